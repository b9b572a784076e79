/// Checks the limits of the process before the constructors of its libraries run. OpenBLAS's constructor tries forever
/// to get memory that the system refuses.
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "base/memory/process_memory.hpp"
#include "cli/commands.hpp"
#include "kernels/products/blas_core.hpp"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define XTAPE_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define XTAPE_SANITIZED
#endif

// A sanitizer must prepare the process before any of its code runs. It also needs terabytes of address space itself.
#ifndef XTAPE_SANITIZED
namespace xtape::cli {
namespace {

constexpr std::size_t least_stack = std::size_t{256} << 10;
constexpr std::size_t for_the_rest = std::size_t{32} << 20;  // memory that the other libraries take during their start

[[noreturn]] void refuse(const std::string& message) {
  const std::string text = "xtape: " + message + "\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  _exit(work_failed);
}

/// Returns the number of threads for which OpenBLAS allocates memory when it is loaded.
int blas_threads(char** environment) {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  int threads = sched_getaffinity(0, sizeof usable, &usable) == 0 ? std::max(1, CPU_COUNT(&usable)) : 1;
  for (const std::string name : {"OMP_NUM_THREADS=", "OPENBLAS_NUM_THREADS="})
    for (char** each = environment; *each != nullptr; ++each)
      if (std::string(*each).compare(0, name.size(), name) == 0)
        if (const int wanted = std::atoi(*each + name.size()); wanted > 0) threads = std::min(threads, wanted);
  return threads;
}

void check_limits(int /*count*/, char** /*arguments*/, char** environment) {
  struct rlimit stack {};
  if (getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur < least_stack)
    refuse("the stack may have " + bytes_text(stack.rlim_cur) + " (ulimit -s), and at least " +
           bytes_text(least_stack) + " are needed");
  const int threads = blas_threads(environment);
  const std::size_t needed = blas_start_bytes(threads) + for_the_rest;
  if (!can_map(needed))
    refuse("out of memory: starting needs " + bytes_text(needed) + " of address space, most of it for OpenBLAS on " +
           std::to_string(threads) + (threads == 1 ? " thread" : " threads") + ", and " + memory_left_text() +
           (threads == 1 ? "" : "; OMP_NUM_THREADS=1 needs less"));
}

// The dynamic linker calls these functions of a program before any constructor of a shared library.
__attribute__((section(".preinit_array"), used)) void (*const first)(int, char**, char**) = check_limits;

}  // namespace
}  // namespace xtape::cli
#endif
