/// Checking recorded gradients against finite differences.
#pragma once

#if defined(XTAPE_LAYER) && XTAPE_LAYER < 6
#error "this layer of xtape may not see the player layer"
#endif

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "xtape/tape.hpp"

namespace xtape {

/// What gradcheck found.
struct GradcheckReport {
  bool passed = true;
  double worst = 0;     ///< The largest |recorded - finite difference| / (1 + |finite difference|).
  std::string message;  ///< Which input and element is worst, with both values.
};
struct GradcheckOptions {
  double step = 1e-6;         ///< Of the central difference.
  double tolerance = 1e-6;
  bool second = false;        ///< Checks the gradient of the gradient instead.
  std::uint64_t seed = 0;     ///< Of the random cotangents.
};
/// Checks the recorded gradients of `function` at `points` (float64) against central differences, with random cotangents.
GradcheckReport gradcheck(const std::function<Vars(const Vars&)>& function, const std::vector<ArrayView>& points,
                          const GradcheckOptions& options = {});
/// The same at points of any type that an ArrayView sees: xtensor's arrays, Array.
template <class Points>
GradcheckReport gradcheck(const std::function<Vars(const Vars&)>& function, const std::vector<Points>& points,
                          const GradcheckOptions& options = {}) {
  return gradcheck(function, std::vector<ArrayView>(points.begin(), points.end()), options);
}

}  // namespace xtape
