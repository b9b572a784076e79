/// Convolutions by Winograd's algorithm.
#pragma once

#include <cstdint>
#include <vector>

#include "xtape/tape.hpp"

namespace xtape {

/// The product of the windows of 3 x 3 elements over x [b, c, h, w], with before[i] and after[i] zeros around spatial
/// axis i, and a weight [o, c, 3, 3]; or, with `adjoint`, a weight [c, o, 3, 3] that is turned around. Empty where the
/// algorithm does not serve: for other windows and dtypes, and for few channels.
Var winograd_conv(const Var& x, const Var& weight, const std::vector<std::int64_t>& before,
                  const std::vector<std::int64_t>& after, bool adjoint);

}  // namespace xtape
