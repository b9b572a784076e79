#include "blas_core.hpp"

#include <cblas.h>
#include <unistd.h>

#include <cstdlib>

namespace xtape {

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
  // If the restart fails, the program continues, only slower.
}

}  // namespace xtape
