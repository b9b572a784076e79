/// Kernels of indexing, groups of rows, and order. Compiled once for all processors.
#pragma once

#include "kernels/table/kernel_form.hpp"

namespace xtape {

// Indices, and slices combined at indices. These kernels are memory-bound, so they are compiled once for all
// processors. All arrays are dense.

/// Returns a kernel that converts int32 or int64 indices to int64. With the attribute "wrap", negative indices count
/// from the end of an axis of "size" elements. Runs throw Error if an index is out of range.
Kernel make_checked_indices(const KernelForm& form);
/// Returns a kernel that copies input 0 (x), and combines the copy with input 2 (part) at the int64 indices of input 1,
/// in the order of the indices. If `whole`, slices along axis 0 are combined. Otherwise, elements along the axis of the
/// attribute "axis" are combined. The attribute "reduce" is "set", "prod", "amax" or "amin". Runs throw Error if an
/// index is out of range.
Kernel make_index_reduce(const KernelForm& form, bool whole);

// Products of groups of rows, each with its own matrix. Nearly all their time goes into the product kernels that they
// call, so they are compiled once for all processors.

/// y[i] = x[i] weights[j] for each row i of group j. Rows in no group are 0. Inputs are x [m, k], weights [g, k, n] and
/// group sizes [g]. Runs throw Error if a size is negative or the sum exceeds m.
Kernel make_ragged_dot(const KernelForm& form);
/// For each group, the sum of x[i]' y[i] over its rows, [g, k, n]. Inputs are x [m, k], y [m, n] and group sizes.
Kernel make_ragged_dot_weights(const KernelForm& form);

// Order and search: sorting, and positions in sorted arrays. Compiled once for all processors.

/// The kernel of top_k: the first k elements along an axis in descending or ascending order, and their indices.
Kernel make_top_k(const KernelForm& form);
/// The kernel of searchsorted: the insertion index of each value in a row of sorted numbers.
Kernel make_searchsorted(const KernelForm& form);

}  // namespace xtape
