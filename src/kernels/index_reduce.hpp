/// Indices, and slices combined at indices. Their time is that of memory: they are compiled once, for any processor.
/// All arrays are dense.
#pragma once

#include "kernel_form.hpp"

namespace xtape {

/// int64 indices from int32 or int64 ones. With the attribute "wrap", those below 0 count from the end of an axis of
/// "size" elements. Runs throw Error for indices out of range.
Kernel make_checked_indices(const KernelForm& form);
/// Copies x, input 0, and combines it with input 2 at the int64 indices, input 1, in order: `whole` slices at the
/// indices along axis 0, or elements along the attribute "axis". The attribute "reduce" is "set", "prod", "amax" or
/// "amin". Runs throw Error for indices out of range.
Kernel make_index_reduce(const KernelForm& form, bool whole);

}  // namespace xtape
