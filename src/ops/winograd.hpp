/// Convolutions by Winograd's algorithm.
#pragma once

#include <cstdint>
#include <vector>

#include "xtape/tape.hpp"

namespace xtape {

/// The product of the windows over x [b, c, ...], with before[i] and after[i] zeros around spatial axis i, and a weight
/// [o, c, ...]; or, with `adjoint`, a weight [c, o, ...] that is turned around. Empty where the algorithm does not
/// serve: it takes windows of 3 x 3 elements, or of 3 or more along one axis, float32 and not too few channels.
Var winograd_conv(const Var& x, const Var& weight, const std::vector<std::int64_t>& before,
                  const std::vector<std::int64_t>& after, bool adjoint);

}  // namespace xtape
