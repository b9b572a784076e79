/// Copies between layouts.
#pragma once

#include <functional>

#include "kernels/table/kernel_form.hpp"
#include "xtape/array.hpp"

namespace xtape {

/// Returns a function that copies an array with layout `in` to an array with layout `out` of the same shape. The
/// arguments of the function are the addresses of offset 0, to which it adds the offsets of the layouts. The elements
/// of the output must not overlap each other or the input.
std::function<void(const void* from, void* to)> make_copy(Dtype dtype, const Layout& in, const Layout& out,
                                                          int threads);

/// Returns a function that writes the numbers of an array of a block format to a dense array of floats. `in` is the
/// layout of the array of blocks, of which the function's first argument is the beginning.
std::function<void(const void* from, float* to)> make_widen_blocks(Dtype dtype, const Layout& in, int threads);

/// Returns a function that writes one value to all elements of a layout. `value` points to a scalar of `dtype`.
/// make_fill copies this scalar, so the returned function does not read `value`.
std::function<void(void* to)> make_fill(Dtype dtype, const Layout& out, const void* value, int threads);

/// A kernel that writes one value to all elements of its output, and then copies its input to some of these elements.
/// `place` is the layout of these elements in the output.
Kernel copy_into(const KernelForm& form, const void* value, const Layout& place);

}  // namespace xtape
