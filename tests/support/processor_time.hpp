/// The time of the processor, for expectations about time. It does not depend on other programs on the machine.
#pragma once

#include <ctime>

/// Returns the seconds of processor time that all threads of this process have used.
inline double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}
