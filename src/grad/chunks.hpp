/// Applies functions to many tangents or cotangents. Private to the code that computes matrices of derivatives.
#pragma once

#include <cstdint>
#include <functional>

#include "xtape/tape.hpp"

namespace xtape {

/// Applies `function` to all rows of `rows` [n, …] in chunks of `chunk_size` rows, one chunk after the other. A chunk
/// size of 0 means all rows at once. Results are [n, …].
Vars over_chunks(const std::function<Vars(const Vars&)>& function, const Var& rows, std::int64_t chunk_size);

}  // namespace xtape
