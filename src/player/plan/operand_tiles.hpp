/// Inputs of fused elementwise ops, read tile by tile: in place where they are dense, otherwise gathered into scratch.
#pragma once

#include <cstdint>

#include "xtape/array.hpp"

namespace xtape {

/// `layout` without axes of size 1 and with adjacent axes merged where one stride can replace two. Has at least one
/// axis.
Layout merged(const Layout& layout);

/// An input broadcast to the shape of the fused ops.
class OperandTiles {
 public:
  OperandTiles(const Layout& layout, const Shape& shape, std::size_t element_bytes);

  std::size_t bytes() const { return bytes_; }  ///< The bytes of an element.
  bool dense() const { return dense_; }      ///< Elements are contiguous, in the order of the output.
  bool uniform() const { return uniform_; }  ///< The same element everywhere.
  /// The length of runs of consecutive elements with a stride of 0 or 1; at least 1.
  std::int64_t run() const { return run_; }

  std::int64_t offset(std::int64_t element) const {  ///< The offset of an element of the output, in elements.
    return offset_of(element / run_) + element % run_ * layout_.strides.back();
  }

  /// The elements [first, first + count) as a dense array: a pointer into `data` if they are within one run of stride
  /// 1, else `scratch`, to which they are copied.
  const void* tile(const void* data, std::int64_t first, std::int64_t count, void* scratch) const;
  /// For uniform operands: writes `count` copies of the element to `scratch`.
  void fill(const void* data, std::int64_t count, void* scratch) const;

 private:
  std::int64_t offset_of(std::int64_t row) const;  // of run number `row`

  Layout layout_;  // merged; the last axis is the run
  std::size_t bytes_;
  bool dense_ = false;
  bool uniform_ = false;
  std::int64_t run_ = 1;
};

}  // namespace xtape
