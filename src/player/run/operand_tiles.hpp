/// Reads the inputs of fused elementwise ops tile by tile: dense inputs in place, other inputs after gathering them
/// into scratch.
#pragma once

#include <cstdint>

#include "xtape/array.hpp"

namespace xtape {

/// Returns `layout` without axes of size 1. Adjacent axes are merged if one stride can replace both strides. The result
/// has at least one axis.
Layout merged(const Layout& layout);

/// An input broadcast to the shape of the fused ops.
class OperandTiles {
 public:
  OperandTiles(const Layout& layout, const Shape& shape, std::size_t element_bytes);

  std::size_t bytes() const { return bytes_; }  ///< The number of bytes of an element.
  bool dense() const { return dense_; }         ///< Elements are contiguous, in the order of the output.
  bool uniform() const { return uniform_; }     ///< All elements are the same element in memory.
  /// Returns the length of the runs of consecutive elements with a stride of 0 or 1, at least 1.
  std::int64_t run() const { return run_; }

  /// Returns the offset, in elements, of the operand's element that corresponds to this element of the output.
  std::int64_t offset(std::int64_t element) const {
    return offset_of(element / run_) + element % run_ * layout_.strides.back();
  }

  /// Returns the elements [first, first + count) as a dense array. If they are within one run of stride 1, the result
  /// points into `data`. Otherwise the function copies them to `scratch` and returns `scratch`.
  const void* tile(const void* data, std::int64_t first, std::int64_t count, void* scratch) const;
  /// For uniform operands: returns the element.
  const void* element(const void* data) const {
    return static_cast<const char*>(data) + layout_.offset * static_cast<std::int64_t>(bytes_);
  }
  /// For uniform operands: writes `count` copies of the element to `scratch`.
  void fill(const void* data, std::int64_t count, void* scratch) const;

 private:
  std::int64_t offset_of(std::int64_t row) const;  // the offset of the run with index `row`

  Layout layout_;  // merged; the last axis is the axis of runs
  std::size_t bytes_;
  bool dense_ = false;
  bool uniform_ = false;
  std::int64_t run_ = 1;
};

}  // namespace xtape
