/// Writing arrays that follow from their shape alone. All outputs are dense.
#pragma once

#include <cstdint>

#include "xtape/literal.hpp"

namespace xtape {

/// `value` must fit the dtype.
void fill_with(void* out, Dtype dtype, std::int64_t count, const Literal& value, int threads);

/// Every element becomes its index along `axis`. Not for bool.
void fill_indices(void* out, Dtype dtype, const Shape& shape, std::size_t axis, int threads);

/// Writes `value` on the diagonal of a matrix and leaves the rest.
void fill_diagonal(void* out, Dtype dtype, std::int64_t rows, std::int64_t columns, double value);

}  // namespace xtape
