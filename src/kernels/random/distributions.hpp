/// Checks of the numbers that describe distributions. Compiled once for all processors.
#pragma once

#include <cstdint>

#include "kernels/table/kernel_form.hpp"

namespace xtape {

/// Throws Error: the logits of this row, of rows of the shape `rows`, contain NaN or infinity.
[[noreturn]] void refuse_logits(std::int64_t row, const Shape& rows);

/// Returns the kernel of checked_weights. Input and output are dense.
Kernel make_checked_weights(const KernelForm& form);

}  // namespace xtape
