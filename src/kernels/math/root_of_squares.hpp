/// Roots of sums of squares that neither overflow nor underflow. Compiled once for all processors.
#pragma once

#include "kernels/table/kernel_form.hpp"

namespace xtape {

/// From this sum on, the squares that underflow change no bit of sums of up to 2^29 elements.
constexpr double least_exact_sum(Dtype dtype) {
  return dtype == Dtype::float64 ? 0x1p-960 : 0x1p-96;
}

/// Returns the kernel of root_of_squares. The inputs have any layout, and the output is dense. The kernel reads x only
/// where a sum of squares is too large or too small.
Kernel make_root_of_squares(const KernelForm& form);

}  // namespace xtape
