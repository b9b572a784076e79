/// The constants of the tanh approximation of gelu.
#pragma once

#include <cmath>

namespace xtape {

inline constexpr double gelu_scale = M_SQRT2 * M_2_SQRTPI * 0.5;  ///< sqrt(2 / pi).
inline constexpr double gelu_cubic = 0.044715;

}  // namespace xtape
