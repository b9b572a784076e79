/// Numbers that several test files use.
#pragma once

#include <limits>

#include "xtape/xtensor.hpp"

namespace xtape {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr float inf32 = std::numeric_limits<float>::infinity();
constexpr float not_a_number32 = std::numeric_limits<float>::quiet_NaN();

/// Twelve different numbers.
inline const xt::xarray<double> points{{{0.3, 1.2, -0.7}, {2.1, -1.4, 0.9}}, {{-0.2, 0.6, 1.7}, {-2.2, 0.1, 1.3}}};

}  // namespace xtape
