/// Where the greatest elements of a dense array stand. NaN counts as greater than any number; of equals the first wins.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reduce.hpp"
#include "xtape/array.hpp"

namespace xtape {

/// The index along the middle of the greatest element; `out` is [outer, inner]. The middle is not empty.
void find_greatest(Dtype dtype, const void* in, const Middle& extent, std::int64_t* out, int threads);

/// The k greatest elements of each row of `length`, in falling order, and where they stood. `scratch` holds top_scratch
/// bytes.
void find_top(Dtype dtype, const void* in, std::int64_t rows, std::int64_t length, std::int64_t k, void* values,
              std::int64_t* indices, void* scratch, int threads);
std::size_t top_scratch(std::int64_t rows, std::int64_t length, int threads);

}  // namespace xtape
