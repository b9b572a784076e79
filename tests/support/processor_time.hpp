/// Time for expectations about time: that of the processor, which does not depend on what else the machine does.
#pragma once

#include <ctime>

/// The seconds of processor time that this process has used, with all its threads.
inline double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}
