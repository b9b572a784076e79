/// How the inputs of fused elementwise ops come to its tiles: straight from memory where they lie densely, else
/// gathered into scratch.
#pragma once

#include <cstdint>

#include "xtape/array.hpp"

namespace xtape {

/// `layout` with neighbouring axes merged wherever one stride serves both, and axes of size 1 left out.
Layout merged(const Layout& layout);

/// An input broadcast to their shape.
class OperandTiles {
 public:
  OperandTiles(const Layout& layout, const Shape& shape, std::size_t element_bytes);

  bool dense() const { return dense_; }      ///< Elements lie in the order of the output's.
  bool uniform() const { return uniform_; }  ///< One element for all.
  /// How many elements on end keep one stride of 0 or 1; at least 1.
  std::int64_t run() const { return run_; }

  /// The elements [first, first + count) as a dense array: a pointer into `data` or, filled here, `scratch`.
  /// A tile that lies within one run of stride 1 needs no copy.
  const void* tile(const void* data, std::int64_t first, std::int64_t count, void* scratch) const;
  /// `count` copies of the element, for uniform operands.
  void fill(const void* data, std::int64_t count, void* scratch) const;

 private:
  std::int64_t offset_of(std::int64_t row) const;

  Layout layout_;  // merged; the last axis is the run
  std::size_t bytes_;
  bool dense_ = false;
  bool uniform_ = false;
  std::int64_t run_ = 1;
};

}  // namespace xtape
