/// Order and search: sorting, and positions in sorted arrays. Compiled once for all processors.
#pragma once

#include "kernels/table/kernel_form.hpp"

namespace xtape {

/// The kernel of top_k: the first k elements along an axis in descending or ascending order, and their indices.
Kernel make_top_k(const KernelForm& form);
/// The kernel of searchsorted: the insertion index of each value in a row of sorted numbers.
Kernel make_searchsorted(const KernelForm& form);

}  // namespace xtape
