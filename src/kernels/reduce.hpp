/// Reductions of dense arrays over any set of axes.
///
/// The order in which elements are combined follows from the shape alone, so results do not depend on the number of
/// threads. Float sums go through many short partial sums that are then added pairwise: as exact as NumPy's along the last
/// axis, and more exact along the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "xtape/array.hpp"

namespace xtape {

enum class Reduction : std::uint8_t { sum, mean, maximum, minimum, any, all };

/// A dense array seen as [outer, size, inner], to be reduced over the middle.
struct Middle {
  std::int64_t outer = 1;
  std::int64_t size = 1;
  std::int64_t inner = 1;

  /// Around one axis of `shape`.
  static Middle around(const Shape& shape, std::size_t axis);
};

/// Reduces arrays of one shape over `axes`. NaN wins maximum and minimum.
class Reducer {
 public:
  /// `axes`: which of them are reduced. The dtypes: any number to itself for maximum and minimum, floats to themselves
  /// for sum and mean, integers and bool to int64 for sum, bool to bool for any and all.
  Reducer(Reduction reduction, Dtype in, const Shape& shape, const std::vector<bool>& axes, int threads);

  Dtype out() const { return out_; }
  std::size_t scratch_bytes() const { return scratch_bytes_; }
  void run(const void* in, void* out, void* scratch) const;

 private:
  /// Adjacent axes of one kind count as one; each pass reduces the innermost group of axes that is left.
  struct Pass {
    Middle extent;
    std::int64_t chunk = 0;  ///< How much of the middle is reduced at a time; the partial results go to scratch.
    std::int64_t chunks = 1;
    std::size_t partial_bytes = 0;  ///< Of the partial results.
  };
  template <class In, class Out, class Combine>
  void run_as(const void* in, void* out, void* scratch, Combine combine) const;

  Reduction reduction_;
  Dtype in_;
  Dtype out_;
  int threads_;
  std::int64_t count_ = 1;  ///< Elements behind each result.
  std::int64_t results_ = 1;
  std::vector<Pass> passes_;
  std::size_t between_bytes_ = 0;  ///< Of the largest result of a pass that is not the last.
  std::size_t scratch_bytes_ = 0;
};

}  // namespace xtape
