/// Softmax as part of attention. A row whose elements are all -inf gives zeros.
#pragma once

#include <cstdint>

#include "xtape/array.hpp"

namespace xtape {

/// dx = scale * y * (dy - sum(dy * y)) for rows of `length` elements. `dx` may be `y` or `dy`.
template <class T>
void softmax_grad(const T* y, const T* dy, T* dx, T scale, std::int64_t rows, std::int64_t length);

/// y = softmax(scale * x) along the last axis. Where the mask is true, x counts as -inf. The layouts of x and of the
/// mask have the same shape and any strides. y is dense.
template <class T>
void masked_softmax(const T* x, const Layout& x_layout, T scale, const bool* mask, const Layout& mask_layout, T* y,
                    int threads);

}  // namespace xtape
