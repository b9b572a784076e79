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

#include "kernels/reductions/middle.hpp"

namespace xtape {

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

}  // namespace xtape
