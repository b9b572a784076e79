#include "base/threads/activity.hpp"

#include <atomic>
#include <chrono>

namespace xtape {

namespace {
thread_local const Activity* now = nullptr;
}  // namespace

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Activity::Activity() : outer_(now) {
  now = this;
}
Activity::~Activity() {
  now = outer_;
}
const Activity* Activity::current() {
  return now;
}

int thread_number() {
  static std::atomic<int> threads{0};
  thread_local const int own = threads++;
  return own;
}

}  // namespace xtape
