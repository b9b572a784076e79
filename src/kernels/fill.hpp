/// Fills arrays with constants and indices. All outputs are dense.
#pragma once

#include <cstdint>

#include "xtape/literal.hpp"

namespace xtape {

/// Writes `value` to `count` elements. `value` must fit the dtype.
void fill_with(void* out, Dtype dtype, std::int64_t count, const Literal& value, int threads);

/// Sets every element to its index along `axis`. `dtype` must not be bool.
void fill_indices(void* out, Dtype dtype, const Shape& shape, std::size_t axis, int threads);

/// Writes `value` to the diagonal of a matrix and leaves the other elements unchanged.
void fill_diagonal(void* out, Dtype dtype, std::int64_t rows, std::int64_t columns, double value);

}  // namespace xtape
