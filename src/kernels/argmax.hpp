/// The largest elements of a dense array and their indices. NaN counts as larger than any number; among equal elements
/// the first wins.
#pragma once

#include <cstddef>
#include <cstdint>

#include "middle.hpp"
#include "xtape/array.hpp"

namespace xtape {

/// The index of the largest element along the middle axis of `extent`, which must not be empty; out[outer, inner].
void argmax_kernel(Dtype dtype, const void* in, const Middle& extent, std::int64_t* out, int threads);

/// The k largest elements of each row of `length` elements, in descending order, and their indices: values[rows, k],
/// indices[rows, k]. `scratch` has top_k_scratch bytes.
void top_k_kernel(Dtype dtype, const void* in, std::int64_t rows, std::int64_t length, std::int64_t k, void* values,
              std::int64_t* indices, void* scratch, int threads);
std::size_t top_k_scratch(std::int64_t rows, std::int64_t length, int threads);

}  // namespace xtape
