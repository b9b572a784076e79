/// Reductions of dense arrays over any set of axes.
///
/// The order in which elements are combined depends only on the shape, so results do not depend on the number of
/// threads. Float sums consist of many short partial sums that are then added pairwise. They are as exact as NumPy's
/// along the last axis, and more exact along other axes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "xtape/array.hpp"

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

/// Reduces arrays of one shape over `axes`. Maximum and minimum propagate NaN.
class Reducer {
 public:
  /// `axes[i]` says whether axis i is reduced. The result has the dtype of the input for maximum and minimum of
  /// numbers, for sum and mean of floats, and for any and all of bool. The sum of integers and bool is int64.
  Reducer(Reduction reduction, Dtype in, const Shape& shape, const std::vector<bool>& axes, int threads);

  Dtype out() const { return out_; }
  std::size_t scratch_bytes() const { return scratch_bytes_; }
  /// If the reduction consists of one pass, in one chunk, over at most `elements` elements: the extent of this pass.
  /// Otherwise empty.
  std::optional<Middle> only_pass(std::int64_t elements) const;
  void run(const void* in, void* out, void* scratch) const;

 private:
  /// One pass over the array. Adjacent axes that are all reduced or all kept form a group. Each pass reduces the
  /// innermost reduced group that remains.
  struct Pass {
    Middle extent;
    /// The middle axis is divided into `chunks` chunks of `chunk` elements (the last may have fewer). Each chunk has a
    /// partial result. With several chunks, the partial results are in scratch.
    std::int64_t chunk = 0;
    std::int64_t chunks = 1;
    std::size_t partial_bytes = 0;  ///< Bytes of the partial results.
  };
  template <class In, class Out, class Combine>
  void run_as(const void* in, void* out, void* scratch, Combine combine) const;

  Reduction reduction_;
  Dtype in_;
  Dtype out_;
  int threads_;
  std::int64_t count_ = 1;  ///< Elements per result.
  std::int64_t results_ = 1;
  std::vector<Pass> passes_;
  std::size_t between_bytes_ = 0;  ///< Bytes of the largest intermediate result.
  std::size_t scratch_bytes_ = 0;
};

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
