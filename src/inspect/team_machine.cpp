// Measures what a prediction for more threads needs to know of this machine.
#include <algorithm>
#include <atomic>
#include <fstream>
#include <string>

#include "base/threads/activity.hpp"
#include "base/threads/threads.hpp"
#include "xtape/array.hpp"
#include "xtape/team_profile.hpp"

namespace xtape {

namespace {
/// The time by which a meeting grows with each further thread. The threads take turns to write the word of the gate,
/// once when they come and once when they go, and a line of the cache takes 50 to 100 ns from one core of a large
/// processor to another (Chips and Cheese, 2023, Core to core latency data on large systems). So does an atomic
/// operation (Schweizer, Besta, Hoefler, 2015, Evaluating the cost of atomic operations on modern architectures).
constexpr double meeting_per_thread = 1e-7;

/// Returns the shortest time in which two threads begin a loop together and end it. Other programs make it longer.
double meeting_of_two() {
  constexpr int meetings = 500;
  double shortest = 1;  // unless two threads never meet, because there is only one core
  const auto member = [](const void* context, int /*worker*/) {
    auto& arrived = *static_cast<std::atomic<int>*>(const_cast<void*>(context));
    ++arrived;
    const double patience = seconds_now() + 1e-3;  // the helper may never come if other programs use its core
    while (arrived < 2 && seconds_now() < patience) {
    }
  };
  for (int i = 0; i < meetings; ++i) {
    std::atomic<int> arrived{0};
    const double start = seconds_now();
    run_team(2, &arrived, member);
    if (arrived == 2) shortest = std::min(shortest, seconds_now() - start);
  }
  return shortest < 1 ? shortest : 1e-6;
}

/// Returns the bytes per second at which all cores read one array and write another. A written line is read first.
double bandwidth_here(std::size_t cache) {
  const std::size_t bytes = std::max(std::size_t{1} << 26, 2 * cache);
  const Array from(Dtype::float32, {static_cast<std::int64_t>(bytes / sizeof(float))});
  const Array to(Dtype::float32, from.shape());
  const int threads = thread_count();
  const float* in = from.as<float>();
  auto* out = const_cast<float*>(to.as<float>());
  double best = 0;
  // The first round gets the memory from the system, and others have busy neighbours.
  for (int round = 0; round < 16; ++round) {
    const double start = seconds_now();
    parallel_for(threads, from.count(), 1 << 14, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) out[i] = in[i] + 1;
    });
    best = std::max(best, 3 * static_cast<double>(bytes) / (seconds_now() - start));
  }
  return best;
}
/// Returns the bytes of the last-level cache, or 0 if Linux does not tell them.
std::size_t cache_here() {
  std::size_t largest = 0;
  for (int index = 0; index < 8; ++index) {
    std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size");
    std::size_t size = 0;
    char unit = ' ';
    if (file >> size >> unit) largest = std::max(largest, unit == 'K' ? size << 10 : unit == 'M' ? size << 20 : 0);
  }
  return largest;
}
}  // namespace

TeamMachine team_machine(int threads) {
  TeamMachine machine;
  machine.threads = thread_count(threads);
  machine.cache = cache_here();
  machine.bandwidth = bandwidth_here(machine.cache);
  machine.meeting = meeting_of_two() + meeting_per_thread * std::max(0, threads - 2);
  return machine;
}

}  // namespace xtape
