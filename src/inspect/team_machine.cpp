// Measures what a prediction for more threads needs to know of this machine.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "base/system/team.hpp"
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

/// How long two threads take to work together.
struct TwoThreads {
  double together = 0;  // seconds from the beginning of a loop to its end, or 1 if they never met
  double opening = 0;   // of these, the seconds until the caller has begun
};

/// Returns the shortest times of so many loops, with a pause of `pause` seconds before each of them. Other programs
/// make them longer.
TwoThreads shortest_of(int loops, double pause) {
  struct Loop {
    std::atomic<int> arrived{0};
    double begun = 0;
  };
  const auto member = [](const void* context, int worker) {
    auto& loop = *static_cast<Loop*>(const_cast<void*>(context));
    if (worker == 0) loop.begun = seconds_now();
    ++loop.arrived;
    const double patience = seconds_now() + 1e-3;  // the helper may never come if other programs use its core
    while (loop.arrived < 2 && seconds_now() < patience) {
    }
  };
  TwoThreads shortest{1, 1};
  for (int i = 0; i < loops; ++i) {
    for (const double end = seconds_now() + pause; seconds_now() < end;) {
    }
    Loop loop;
    const double start = seconds_now();
    run_team(2, &loop, member);
    if (loop.arrived < 2) continue;
    shortest.together = std::min(shortest.together, seconds_now() - start);
    shortest.opening = std::min(shortest.opening, loop.begun - start);
  }
  return shortest;
}

/// Sets how the threads of a machine meet.
void measure_meetings(TeamMachine& machine) {
  constexpr double longest = 1;  // a machine of one core has no meeting
  const TwoThreads awake = shortest_of(500, 0), asleep = shortest_of(50, 3 * seconds_awake);
  machine.meeting = awake.together < longest ? awake.together : 1e-6;
  machine.meeting_each = meeting_per_thread;
  if (asleep.together == longest) return;
  machine.waking = std::max(0.0, asleep.opening - awake.opening);
  machine.rising = std::max(0.0, asleep.together - machine.meeting - machine.waking);
}

/// Returns the bytes per second at which all cores read two arrays. memcmp has the widest loads of the processor, so
/// that memory is the limit and not the loop.
double bandwidth_here(std::size_t cache) {
  const std::size_t bytes = std::max(std::size_t{1} << 26, 2 * cache);
  std::vector<Array> arrays;
  for (int i = 0; i < 2; ++i) {
    arrays.emplace_back(Dtype::int8, Shape{static_cast<std::int64_t>(bytes)});
    std::memset(arrays.back().as<std::int8_t>(), 1, bytes);  // memory that nobody has written is one page of zeros
  }
  const std::int8_t *a = arrays[0].as<std::int8_t>(), *b = arrays[1].as<std::int8_t>();
  const int threads = thread_count();
  std::atomic<int> different{0};
  // Several rounds, because others may have busy neighbours. A cache of hundreds of MiB makes a round long.
  constexpr int most_rounds = 16;
  constexpr double long_enough = 1;
  double best = 0;
  const double begun = seconds_now();
  for (int round = 0; round < most_rounds && seconds_now() - begun < long_enough; ++round) {
    const double start = seconds_now();
    parallel_for(threads, arrays[0].count(), 1 << 16, [&](std::int64_t begin, std::int64_t end) {
      different += std::memcmp(a + begin, b + begin, static_cast<std::size_t>(end - begin)) != 0 ? 1 : 0;
    });
    best = std::max(best, 2 * static_cast<double>(bytes) / (seconds_now() - start));
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
  measure_meetings(machine);
  return machine;
}

}  // namespace xtape
