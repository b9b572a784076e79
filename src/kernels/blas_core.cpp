#include "blas_core.hpp"

#include <cblas.h>

namespace xtape {

std::string blas_description() {
  return std::string(openblas_get_config()) + ", kernels for " + openblas_get_corename();
}

}  // namespace xtape
