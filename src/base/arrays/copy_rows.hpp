/// Rows of arrays: the slices along the first axis.
#pragma once

#include <cstdint>

#include "xtape/array.hpp"

namespace xtape {

/// Returns the shape of an array with its number of rows replaced by `rows`. The shape has at least one axis.
inline Shape with_rows(Shape shape, std::int64_t rows) {
  shape[0] = rows;
  return shape;
}

/// Copies the listed rows of an array to `to`, one after the other.
void copy_rows(const ArrayView& from, const std::uint32_t* rows, std::int64_t count, void* to);

}  // namespace xtape
