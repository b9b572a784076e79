/// Arrays for the tests of per-example gradients.
#pragma once

#include <doctest/doctest.h>

#include <cmath>

#include "xtape/xtensor.hpp"
#include "xview.hpp"

namespace xtape {

using Doubles = xt::xarray<double>;

inline Array filled(const std::vector<std::size_t>& shape, double scale = 0.5, double step = 1.3) {
  Doubles found = xt::zeros<double>(shape);
  double i = 0;
  for (double& each : found) each = scale * std::sin(step * ++i);
  return Array(ArrayView(found));
}

inline double squares(const Doubles& x) {
  double total = 0;
  for (const double each : x) total += each * each;
  return total;
}

inline void check_near(const Doubles& found, const Doubles& expected, double tolerance) {
  REQUIRE(found.shape() == expected.shape());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(found.flat(i) - expected.flat(i)) <= tolerance * (1 + std::abs(expected.flat(i))));
  }
}

}  // namespace xtape
