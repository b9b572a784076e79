// A team: one word, the gate, says whether there is work and how many helpers are at it.
//
// OpenMP's regions wait at their end for every thread of the team. On a busy machine the system runs one of them only
// milliseconds later, although the others have done all work meanwhile. Here the caller closes the gate when no work is
// left, and waits only for helpers that have entered.
#include "team.hpp"

#include <omp.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

namespace xtape {

namespace {
// The gate: the number of helpers inside in 15 bits, whether it is open in one, and the number of the call in 16. A
// helper that sees no call for 65,536 calls may take the next one for the last that it saw, and miss it.
constexpr std::uint32_t open = 1U << 15, one_call = 1U << 16;
std::uint32_t inside(std::uint32_t gate) {
  return gate & (open - 1);
}
std::uint32_t call_of(std::uint32_t gate) {
  return gate / one_call;
}

/// How long a thread waits awake. Shorter, and the next call of the same play has to wake it (some 10 µs); longer, and
/// it takes the core from a thread that has work.
constexpr std::chrono::microseconds awake{100};

/// Tells the processor that the thread spins.
void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Waits until ready(value of `word`), and returns the value.
template <class Ready>
std::uint32_t wait_until(const std::atomic<std::uint32_t>& word, const Ready& ready) {
  const auto end = std::chrono::steady_clock::now() + awake;
  std::uint32_t value = word.load(std::memory_order_acquire);
  do {
    for (int i = 0; i < 16 && !ready(value); ++i, value = word.load(std::memory_order_acquire)) relax();
  } while (!ready(value) && std::chrono::steady_clock::now() < end);
  for (; !ready(value); value = word.load(std::memory_order_acquire)) word.wait(value);
  return value;
}

std::atomic<int> forks{0};           // of this process and its ancestors
thread_local bool is_alone = false;  // in a member, in a helper, and after the end of the team

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
    ends_ = true;  // before the gate changes, which wakes all
    announce();
    for (std::thread& helper : helpers_) helper.join();
  }

  void run(int threads, const void* context, void (*member)(const void* context, int worker)) {
    if (is_of_parent()) forget();
    start(threads - 1);
    context_ = context;
    member_ = member;
    threads_ = threads;
    finished_.store(0, std::memory_order_relaxed);
    announce();
    member(context, 0);
    if (inside(gate_.fetch_and(~open)) == 0) return;
    wait_until(finished_, [](std::uint32_t finished) { return finished != 0; });
  }

 private:
  /// Whether the helpers are threads of the process that forked this one.
  bool is_of_parent() const { return forks_ != forks.load(std::memory_order_relaxed); }
  void forget() {
    new std::vector<std::thread>(std::move(helpers_));  // a thread that is not there can be neither joined nor detached
    forks_ = forks;
    gate_ = 0;
  }

  /// Starts helpers, up to that number. Without memory for more, the work has fewer.
  void start(int count) {
    try {
      while (static_cast<int>(helpers_.size()) < count)
        helpers_.emplace_back([this, worker = static_cast<int>(helpers_.size()) + 1, seen = call_of(gate_)] {
          is_alone = true;
          omp_set_num_threads(1);  // for BLAS
          help(worker, seen);
        });
    } catch (const std::exception&) {
    }
  }

  /// Opens the gate for the next call.
  void announce() {
    gate_ = ((call_of(gate_.load(std::memory_order_relaxed)) + 1) * one_call) | open;
    gate_.notify_all();
  }

  void help(int worker, std::uint32_t seen) {
    for (;;) {
      std::uint32_t gate = wait_until(gate_, [&](std::uint32_t now) { return call_of(now) != seen || ends_; });
      if (ends_) return;
      bool entered = false;
      while ((gate & open) != 0 && !(entered = gate_.compare_exchange_weak(gate, gate + 1))) {
      }
      seen = call_of(gate);
      if (!entered) continue;
      if (worker < threads_) member_(context_, worker);
      const std::uint32_t before = gate_.fetch_sub(1);
      if (inside(before) == 1 && (before & open) == 0) {
        finished_ = 1;
        finished_.notify_one();
      }
    }
  }

  alignas(64) std::atomic<std::uint32_t> gate_{0};
  alignas(64) std::atomic<std::uint32_t> finished_{0};  // whether the last helper has left the closed gate
  alignas(64) const void* context_ = nullptr;
  void (*member_)(const void* context, int worker) = nullptr;
  int threads_ = 0;
  std::atomic<bool> ends_{false};
  int forks_ = forks;
  std::vector<std::thread> helpers_;
};

struct TeamOfThread {
  Team team = {};
  ~TeamOfThread() { is_alone = true; }
};
}  // namespace

void run_team(int threads, const void* context, void (*member)(const void* context, int worker)) {
  if (threads <= 1 || is_alone) return member(context, 0);
  thread_local TeamOfThread of_thread;
  is_alone = true;
  of_thread.team.run(threads, context, member);
  is_alone = false;
}

}  // namespace xtape
