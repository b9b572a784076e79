/// Functions that the benchmarks share.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdlib>

namespace bench {

inline double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Restarts the program without OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE if they are set. OpenBLAS reads them when it is
/// loaded, and either can make it choose slower kernels.
inline void leave_blas_its_choice(char** arguments) {
  if (std::getenv("OPENBLAS_CORETYPE") == nullptr && std::getenv("OPENBLAS_L2_SIZE") == nullptr) return;
  unsetenv("OPENBLAS_CORETYPE");
  unsetenv("OPENBLAS_L2_SIZE");
  execv("/proc/self/exe", arguments);
}

}  // namespace bench
