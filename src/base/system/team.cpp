// The gate of a team is one word. It says whether there is work and how many helpers take part. Helpers that are awake
// watch it. The caller wakes those that sleep, one by one, and only as many as have work.
//
// OpenMP's regions wait at their end for every thread of the team. On a busy machine, the system may run one of these
// threads milliseconds late, when the others have already done all the work. Here the caller closes the gate when no
// work is left, and waits only for helpers that have entered.
#include "base/system/team.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/threads/activity.hpp"
#include "base/threads/threads.hpp"

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

namespace {
// The bits of the gate: 15 for the number of helpers inside, one for whether the gate is open, 16 for the number of the
// call. A helper that misses 65,535 calls may mistake the next call for the last call that it saw, and miss this call,
// too.
constexpr std::uint32_t is_open = 1U << 15, one_call = 1U << 16;
std::uint32_t inside(std::uint32_t gate) {
  return gate & (is_open - 1);
}
std::uint32_t call_of(std::uint32_t gate) {
  return gate / one_call;
}

/// Tells the processor that the thread spins.
void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Spins until ready(value of `word`) is true, at most for seconds_awake. Returns the last value.
template <class Ready>
std::uint32_t spin_until(const std::atomic<std::uint32_t>& word, const Ready& ready) {
  const double end = seconds_now() + seconds_awake;
  std::uint32_t value = word.load(std::memory_order_acquire);
  do {
    for (int i = 0; i < 16 && !ready(value); ++i, value = word.load(std::memory_order_acquire)) relax();
  } while (!ready(value) && seconds_now() < end);
  return value;
}

std::atomic<int> forks{0};        // number of forks of this process and its ancestors
thread_local bool alone = false;  // what is_alone() returns

class Team {
 public:
  Team() {
    static const int once = pthread_atfork(nullptr, nullptr, [] { ++forks; });
    static_cast<void>(once);
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team() {
    if (is_of_parent()) forget();
    ends_ = true;  // set before the gate changes
    announce(static_cast<int>(helpers_.size()) + 1);
    for (const auto& helper : helpers_) helper->thread.join();
  }

  void run(int threads, const void* context, void (*member)(const void* context, int worker)) {
    if (is_of_parent()) forget();
    start(threads - 1);
    context_ = context;
    member_ = member;
    finished_.store(0, std::memory_order_relaxed);
    announce(threads);
    member(context, 0);
    if (inside(gate_.fetch_and(~is_open)) == 0) return;
    if (spin_until(finished_, [](std::uint32_t finished) { return finished != 0; }) == 0) finished_.wait(0);
  }

 private:
  struct alignas(64) Helper {
    std::thread thread;
    std::atomic<std::uint32_t> asleep{0};
  };

  /// Returns whether the helpers are threads of the parent process, which forked this process.
  bool is_of_parent() const { return forks_ != forks.load(std::memory_order_relaxed); }
  void forget() {
    // never destroyed, because threads that do not exist in this process can be neither joined nor detached
    new std::vector<std::unique_ptr<Helper>>(std::move(helpers_));
    forks_ = forks;
    gate_ = 0;
  }

  /// Starts helpers until there are `count` of them. If memory runs out, there are fewer helpers.
  void start(int count) {
    try {
      while (static_cast<int>(helpers_.size()) < count) {
        auto helper = std::make_unique<Helper>();
        helper->thread = std::thread(
            [this, &helper = *helper, worker = static_cast<int>(helpers_.size()) + 1, seen = call_of(gate_)] {
              alone = true;
              help(helper, worker, seen);
            });
        helpers_.push_back(std::move(helper));
      }
    } catch (const std::exception&) {
    }
  }

  /// Opens the gate for the next call, of this many threads, and wakes those that sleep.
  void announce(int threads) {
    threads_.store(threads, std::memory_order_relaxed);
    gate_ = ((call_of(gate_.load(std::memory_order_relaxed)) + 1) * one_call) | is_open;
    for (const auto& helper : std::span(helpers_).first(std::min(helpers_.size(), std::size_t(threads) - 1)))
      if (helper->asleep != 0) {
        helper->asleep = 0;
        helper->asleep.notify_one();
      }
  }

  /// Waits until has_work(gate) is true, and returns the gate.
  template <class HasWork>
  std::uint32_t wait(Helper& own, const HasWork& has_work) {
    std::uint32_t gate = spin_until(gate_, has_work);
    while (!has_work(gate)) {
      own.asleep = 1;
      // Either the caller, which opens the gate first, sees that this helper sleeps, or this helper sees the open gate.
      gate = gate_;
      if (!has_work(gate)) own.asleep.wait(1);
      own.asleep = 0;
      gate = gate_;
    }
    return gate;
  }

  void help(Helper& own, int worker, std::uint32_t seen) {
    for (;;) {
      // A call of fewer threads is none for this helper, so it does not stay awake because of it.
      std::uint32_t gate = wait(own, [&](std::uint32_t now) {
        return ends_ || (call_of(now) != seen && worker < threads_.load(std::memory_order_relaxed));
      });
      if (ends_) return;
      bool entered = false;
      while ((gate & is_open) != 0 && !(entered = gate_.compare_exchange_weak(gate, gate + 1))) {
      }
      seen = call_of(gate);
      if (!entered) continue;
      if (worker < threads_.load(std::memory_order_relaxed)) member_(context_, worker);
      const std::uint32_t before = gate_.fetch_sub(1);
      if (inside(before) == 1 && (before & is_open) == 0) {
        finished_ = 1;
        finished_.notify_one();
      }
    }
  }

  alignas(64) std::atomic<std::uint32_t> gate_{0};
  alignas(64) std::atomic<std::uint32_t> finished_{0};  // whether the last helper has left the closed gate
  alignas(64) const void* context_ = nullptr;
  void (*member_)(const void* context, int worker) = nullptr;
  std::atomic<int> threads_{0};  // of the current call
  std::atomic<bool> ends_{false};
  int forks_ = forks;
  std::vector<std::unique_ptr<Helper>> helpers_;
};

struct TeamOfThread {
  Team team = {};
  ~TeamOfThread() { alone = true; }
};
}  // namespace

bool is_alone() {
  return alone;
}
Alone::Alone() : before_(alone) {
  alone = true;
}
Alone::~Alone() {
  alone = before_;
}

void run_team(int threads, const void* context, void (*member)(const void* context, int worker)) {
  if (threads <= 1 || alone) return member(context, 0);
  thread_local TeamOfThread of_thread;
  const Alone members;
  of_thread.team.run(threads, context, member);
}

}  // namespace xtape
