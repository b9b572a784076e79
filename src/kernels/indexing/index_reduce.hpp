/// Indices, and slices combined at indices. These kernels are memory-bound, so they are compiled once for all
/// processors. All arrays are dense.
#pragma once

#include "kernels/table/kernel_form.hpp"

namespace xtape {

/// Returns a kernel that converts int32 or int64 indices to int64. With the attribute "wrap", negative indices count
/// from the end of an axis of "size" elements. Runs throw Error if an index is out of range.
Kernel make_checked_indices(const KernelForm& form);
/// Returns a kernel that copies input 0 (x), and combines the copy with input 2 (part) at the int64 indices of input 1,
/// in the order of the indices. If `whole`, slices along axis 0 are combined. Otherwise, elements along the axis of the
/// attribute "axis" are combined. The attribute "reduce" is "set", "prod", "amax" or "amin". Runs throw Error if an
/// index is out of range.
Kernel make_index_reduce(const KernelForm& form, bool whole);

}  // namespace xtape
