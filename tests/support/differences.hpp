/// Difference quotients, with which tests compare derivatives.
#pragma once

#include <functional>

namespace xtape::test {

/// The central difference quotient of `value` by `element`, which it reads; `element` is then as before.
inline double slope_by(double& element, const std::function<double()>& value, double h = 1e-5) {
  const double before = element;
  element = before + h;
  const double above = value();
  element = before - h;
  const double below = value();
  element = before;
  return (above - below) / (2 * h);
}

}  // namespace xtape::test
