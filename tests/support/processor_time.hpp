/// The time of the processor, for expectations about time. It does not depend on other programs on the machine.
#pragma once

#include <algorithm>
#include <ctime>

/// Returns the seconds of processor time that all threads of this process have used.
inline double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// Returns the least processor time that the action takes in three tries, in seconds: programs beside this one share
/// its caches and cores, so a single try can take twice as long.
template <class Action>
double least_processor_seconds(const Action& action) {
  double least = 1e9;
  for (int i = 0; i < 3; ++i) {
    const double start = processor_seconds();
    action();
    least = std::min(least, processor_seconds() - start);
  }
  return least;
}
