/// Checks of gradients by finite differences.
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <vector>

#include "xtape/gradcheck.hpp"
#include "xtape/xtensor.hpp"

namespace xtape {

/// Checks the first and the second gradient by finite differences in float64.
inline void check_gradients(const std::function<Vars(const Vars&)>& function,
                            const std::vector<xt::xarray<double>>& points, bool second = true) {
  const GradcheckReport report = gradcheck(function, points);
  CHECK_MESSAGE(report.passed, "gradient: " << report.message);
  if (!second) return;
  GradcheckOptions options;
  options.second = true;
  const GradcheckReport twice = gradcheck(function, points, options);
  CHECK_MESSAGE(twice.passed, "second gradient: " << twice.message);
}

}  // namespace xtape
