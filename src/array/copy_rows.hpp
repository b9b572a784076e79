/// Rows of arrays: the parts at the indices of the first axis.
#pragma once

#include <cstdint>

#include "xtape/array.hpp"

namespace xtape {

/// The shape of an array with `rows` rows in place of its own; it has at least one axis.
inline Shape with_rows(Shape shape, std::int64_t rows) {
  shape[0] = rows;
  return shape;
}

/// Copies these rows of an array to `to`, one after the other.
void copy_rows(const ArrayView& from, const std::uint32_t* rows, std::int64_t count, void* to);

}  // namespace xtape
