/// Convolutions by Winograd's algorithm.
#pragma once

#include <cstdint>
#include <vector>

#include "xtape/tape.hpp"

namespace xtape {

/// Returns the product of the windows over x [b, c, ...], with before[i] and after[i] zeros around spatial axis i, and
/// a weight [o, c, ...]. With `adjoint`, the weight is [c, o, ...] and is flipped. Returns an empty var if the
/// algorithm is not applicable. It requires float32, enough channels, and windows of 3 x 3 elements or of 3 or more
/// elements along a single axis.
Var winograd_conv(const Var& x, const Var& weight, const std::vector<std::int64_t>& before,
                  const std::vector<std::int64_t>& after, bool adjoint);

}  // namespace xtape
