/// Difference quotients. Tests compare derivatives with them.
#pragma once

#include <functional>

namespace xtape::test {

/// Returns the central difference quotient of `value` with respect to `element`, which `value` reads. Restores
/// `element` afterwards.
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
