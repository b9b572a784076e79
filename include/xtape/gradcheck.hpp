/// Checks recorded gradients against finite differences.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "xtape/tape.hpp"

namespace xtape {

/// The result of gradcheck.
struct GradcheckReport {
  bool passed = true;   ///< Whether worst <= tolerance.
  double worst = 0;     ///< The largest |recorded - finite difference| / (1 + |finite difference|); infinity for NaN.
  std::string message;  ///< The worst input and element, with both values; empty if worst is 0.
};
struct GradcheckOptions {
  double step = 1e-6;       ///< The step of the central difference in each direction.
  double tolerance = 1e-6;  ///< The largest GradcheckReport::worst that passes.
  bool second = false;      ///< Whether to check the gradient of the gradient instead.
  std::uint64_t seed = 0;   ///< Determines the random cotangents.
};
/// Checks the gradients of `function` at `points`, one float64 array per input. The reference is central differences of
/// the float64 outputs of the function, weighted by random cotangents. Outputs of other dtypes are ignored. gradcheck
/// calls `function` once, on a tape in mode train whose default dtype is float64. Random ops draw the same numbers in
/// all plays. The gradients run with all optimisation passes. The finite differences run with the reference passes
/// only, and take two plays per element of `points`. Throws DtypeError if a point is not float64, and Error if there is
/// no float64 output. Errors of recording and playing propagate.
GradcheckReport gradcheck(const std::function<Vars(const Vars&)>& function, const std::vector<ArrayView>& points,
                          const GradcheckOptions& options = {});
/// The same for points of any type that converts to ArrayView, such as xtensor arrays or Array.
template <class Points>
GradcheckReport gradcheck(const std::function<Vars(const Vars&)>& function, const std::vector<Points>& points,
                          const GradcheckOptions& options = {}) {
  return gradcheck(function, std::vector<ArrayView>(points.begin(), points.end()), options);
}

}  // namespace xtape
