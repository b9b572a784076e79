/// Reductions of dense arrays over any set of axes.
///
/// The order in which elements are combined depends only on the shape, so results do not depend on the number of
/// threads. Float sums consist of many short partial sums that are then added pairwise. They are as exact as NumPy's
/// along the last axis, and more exact along other axes.
#pragma once

#include <cstdint>

#include "xtape/array.hpp"
#include "xtape/op/kernel.hpp"

namespace xtape {

// Dense arrays viewed with one axis in the middle.

/// A dense array viewed as [outer, size, inner].
struct Middle {
  std::int64_t outer = 1;
  std::int64_t size = 1;
  std::int64_t inner = 1;

  /// The view with axis `axis` of `shape` in the middle. Negative axes count from the back.
  static Middle around(const Shape& shape, std::int64_t axis) {
    const std::size_t at = normal_axis(axis, shape.size());
    Middle result;
    for (std::size_t i = 0; i < shape.size(); ++i)
      (i < at ? result.outer : i == at ? result.size : result.inner) *= shape[i];
    return result;
  }
};

enum class Reduction : std::uint8_t { sum, mean, maximum, minimum, any, all };

/// Returns a kernel that sums an array [rows, columns] of floats over its rows.
Kernel make_row_sum(Dtype dtype, std::int64_t rows, std::int64_t columns, int threads);

// Softmax as part of attention. A row whose elements are all -inf gives zeros.

/// dx = scale * y * (dy - sum(dy * y)) for rows of `length` elements. `dx` may be `y` or `dy`.
template <class T>
void softmax_grad(const T* y, const T* dy, T* dx, T scale, std::int64_t rows, std::int64_t length);

/// y = softmax(scale * x) along the last axis. Where the mask is true, x counts as -inf. The layouts of x and of the
/// mask have the same shape and any strides. y is dense.
template <class T>
void masked_softmax(const T* x, const Layout& x_layout, T scale, const bool* mask, const Layout& mask_layout, T* y,
                    int threads);

}  // namespace xtape
