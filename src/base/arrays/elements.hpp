/// Elements, rows and indices of arrays.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "xtape/array.hpp"

namespace xtape {

// Conversion between the dtypes of floats.

/// Rounds the elements of `from` to the dtype of `to`, and writes the results to `to`. Both arrays are floats of the
/// same shape, and `from` may be in blocks. Uses all threads.
void convert_floats(const Array& from, Array& to);

// Rows of arrays: the slices along the first axis.

/// Returns the shape of an array with its number of rows replaced by `rows`. The shape has at least one axis.
inline Shape with_rows(Shape shape, std::int64_t rows) {
  shape[0] = rows;
  return shape;
}

/// Copies the listed rows of an array to `to`, one after the other.
void copy_rows(const ArrayView& from, const std::uint32_t* rows, std::int64_t count, void* to);

// Indices of elements in arrays.

/// Returns the index of an element, given its position in row-major order.
std::vector<std::int64_t> index_of(std::int64_t element, const Shape& shape);

/// "[1, 2]".
std::string index_text(const std::vector<std::int64_t>& index);

// Checks whether arrays are finite.

/// Returns whether no element of a dense array is NaN or infinite. Arrays of other dtypes than floats are always
/// finite.
bool all_finite(const ArrayView& values);

}  // namespace xtape
