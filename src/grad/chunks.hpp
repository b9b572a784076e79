/// Functions of many tangents or cotangents. Private to what computes matrices of derivatives.
#pragma once

#include <cstdint>
#include <functional>

#include "xtape/tape.hpp"

namespace xtape {

/// `function` of all rows of `rows` [n, …], `chunk_size` at a time, one chunk after the other; 0: all at once. Results
/// are [n, …].
Vars over_chunks(const std::function<Vars(const Vars&)>& function, const Var& rows, std::int64_t chunk_size);

}  // namespace xtape
