/// The version and kernels of the BLAS library in use, for reports.
#pragma once

#include <string>

namespace xtape {

/// "OpenBLAS 0.3.21 …, kernels for SkylakeX".
std::string blas_description();

}  // namespace xtape
