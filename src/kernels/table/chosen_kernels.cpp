// Chooses the table of kernels. Compiled once for all processors.
#include "kernels/table/kernels.hpp"

namespace xtape {

extern const Kernels kernels_of_baseline;
#ifdef XTAPE_WIDE_KERNELS
extern const Kernels kernels_of_avx2, kernels_of_avx512;
#endif

const Kernels& kernels() {
  static const Kernels& chosen = []() -> const Kernels& {
#ifdef XTAPE_WIDE_KERNELS
    if (instruction_set() >= InstructionSet::avx512) return kernels_of_avx512;
    if (instruction_set() >= InstructionSet::avx2) return kernels_of_avx2;
#endif
    return kernels_of_baseline;
  }();
  return chosen;
}

}  // namespace xtape
