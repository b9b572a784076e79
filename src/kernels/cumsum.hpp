/// Cumulative sums along an axis of a dense array.
#pragma once

#include "middle.hpp"
#include "xtape/array.hpp"

namespace xtape {

/// out[o, i, j] = the sum of in[o, 0 … i, j], or of in[o, i …, j] if `reverse`.
/// The dtype of a float array is kept, and `out` may then be `in`; integers and bool give int64.
void running_sum(Dtype dtype, const void* in, const Middle& extent, bool reverse, void* out, int threads);

}  // namespace xtape
