#include "kernels/products/blas_core.hpp"

#include <cblas.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "base/memory/process_memory.hpp"
#include "base/threads/threads.hpp"
#include "xtape/error.hpp"

// Functions of OpenBLAS that its headers do not declare. A BLAS call takes a buffer while it runs. A returned buffer
// stays mapped. In builds that lack these functions, their addresses are null.
extern "C" {
void* blas_memory_alloc(int purpose) __attribute__((weak));
void blas_memory_free(void* buffer) __attribute__((weak));
}

namespace xtape {

namespace {
/// The address space of a buffer in builds of OpenBLAS for 64-bit processors.
constexpr std::size_t blas_buffer = std::size_t{128} << 20;
}  // namespace

void reserve_blas() {
  static std::atomic<int> reserved{0};
  static std::mutex mutex;
  const int threads = most_threads_so_far();
  if (threads <= reserved) return;
  const std::lock_guard<std::mutex> lock(mutex);
  if (threads <= reserved) return;
  const std::size_t bytes = static_cast<std::size_t>(threads - reserved) * blas_buffer;
  if (!can_map(bytes))
    throw OutOfMemory("out of memory: LAPACK on " + std::to_string(threads) + (threads == 1 ? " thread" : " threads") +
                      " needs " + bytes_text(bytes) + " of address space for OpenBLAS, and " + memory_left_text() +
                      (threads == 1 ? "" : "; fewer threads need less"));
  if (blas_memory_alloc != nullptr && blas_memory_free != nullptr) {
    std::vector<void*> buffers;
    for (int i = 0; i < threads; ++i) buffers.push_back(blas_memory_alloc(0));
    for (void* buffer : buffers) blas_memory_free(buffer);
  }
  reserved = threads;
}

std::size_t blas_start_bytes(int threads) {
  return static_cast<std::size_t>(threads) * blas_buffer;
}

std::string blas_description() {
  return std::string(openblas_get_config()) + ", kernels for " + openblas_get_corename();
}

std::string blas_kernels_for([[maybe_unused]] InstructionSet set) {
#ifdef __x86_64__
  switch (set) {
    case InstructionSet::baseline:
      return "Prescott";
    case InstructionSet::avx2:
      return "Haswell";
    case InstructionSet::avx512:
      return "SkylakeX";
    default:
      return "Cooperlake";
  }
#else
  return "";
#endif
}

void restart_with_fitting_blas(char** arguments) {
  if (std::getenv("XTAPE_KEEP_BLAS_ENV") != nullptr) return;
  const char* limit = std::getenv("XTAPE_ISA");
  const std::string wanted = limit == nullptr || *limit == '\0' ? "" : blas_kernels_for(instruction_set());
  const char* given = std::getenv("OPENBLAS_CORETYPE");
  if (wanted == (given == nullptr ? "" : given) && std::getenv("OPENBLAS_L2_SIZE") == nullptr) return;
  unsetenv("OPENBLAS_L2_SIZE");
  if (wanted.empty())
    unsetenv("OPENBLAS_CORETYPE");
  else
    setenv("OPENBLAS_CORETYPE", wanted.c_str(), 1);
  execv("/proc/self/exe", arguments);
  // If the restart fails, the program continues with slower products.
}

}  // namespace xtape
