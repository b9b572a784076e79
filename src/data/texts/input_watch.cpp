#include <sys/stat.h>

#include <chrono>
#include <functional>
#include <string>
#include <system_error>

#include "base/memory/process_memory.hpp"
#include "data/texts/texts.hpp"
#include "xtape/text.hpp"

namespace xtape {

namespace {
struct Watching {
  std::function<void(const std::string&)> tell;
  double seconds = 0;
};
Watching& watching() {
  static Watching the;
  return the;
}

/// Returns "a pipe" or another description. Returns nullptr for files whose reading always ends: regular files,
/// folders, and files that do not exist.
const char* kind_of(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) return nullptr;
  return S_ISFIFO(status.st_mode) ? "a pipe" : S_ISSOCK(status.st_mode) ? "a socket" : "a device";
}
}  // namespace

void watch_inputs(std::function<void(const std::string&)> tell, double seconds) {
  if (!(seconds > 0)) throw Error("watch_inputs: the time must be positive, got " + std::to_string(seconds));
  watching() = {std::move(tell), seconds};
}

InputWatch::InputWatch(const std::string& path) {
  if (!watching().tell) return;
  const char* kind = kind_of(path);
  if (kind == nullptr) return;
  what_ = path + ", " + kind;
  try {
    thread_ = std::thread([this] { watch(); });
  } catch (const std::system_error&) {
    // The file can be read without being watched.
  }
}

InputWatch::~InputWatch() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
  }
  ends_.notify_all();
  thread_.join();
}

void InputWatch::watch() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (double seconds = watching().seconds;; seconds *= 2) {
    if (ends_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return ended_; })) return;
    const std::size_t bytes = bytes_;
    const std::string far = bytes == 0 ? "nothing has come so far" : bytes_text(bytes) + " so far";
    lock.unlock();
    watching().tell("reading " + what_ + ": " + far);
    lock.lock();
  }
}

}  // namespace xtape
