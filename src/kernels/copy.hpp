/// Copying between layouts.
#pragma once

#include <functional>

#include "xtape/array.hpp"

namespace xtape {

/// A copy of one array into another of the same shape: call it with where their offsets 0 lie. The layouts' own offsets
/// count. The output's elements must not overlap one another or the input.
std::function<void(const void* from, void* to)> make_copy(Dtype dtype, const Layout& in, const Layout& out,
                                                          int threads);

/// Writes one value to all elements of a layout; `value` points to a scalar of `dtype`, read when the fill is made.
std::function<void(void* to)> make_fill(Dtype dtype, const Layout& out, const void* value, int threads);

}  // namespace xtape
