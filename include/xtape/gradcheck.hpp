/// A check of recorded gradients against finite differences.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "xtape/tape.hpp"

namespace xtape {

/// The result of gradcheck.
struct GradcheckReport {
  bool passed = true;   ///< worst <= tolerance.
  double worst = 0;     ///< The largest |recorded - finite difference| / (1 + |finite difference|); infinity for NaN.
  std::string message;  ///< The worst input and element, with both values; empty if worst is 0.
};
struct GradcheckOptions {
  double step = 1e-6;         ///< The step of the central difference, to each side.
  double tolerance = 1e-6;    ///< On GradcheckReport::worst.
  bool second = false;        ///< Whether to check the gradient of the gradient instead.
  std::uint64_t seed = 0;     ///< Determines the random cotangents.
};
/// Checks the gradients of `function` at `points`, one float64 array per input, against central differences of the
/// function's float64 outputs, weighted by random cotangents; outputs of other dtypes are ignored. `function` is called
/// once, on a tape in mode train whose default dtype is float64; random ops draw the same numbers throughout. Gradients
/// are played with all passes, differences by the reference passes, twice per element of `points`. Throws DtypeError if
/// a point is not float64, Error if there is no float64 output, and what recording and playing throw.
GradcheckReport gradcheck(const std::function<Vars(const Vars&)>& function, const std::vector<ArrayView>& points,
                          const GradcheckOptions& options = {});
/// The same, with points of any type that converts to ArrayView: xtensor arrays, Array.
template <class Points>
GradcheckReport gradcheck(const std::function<Vars(const Vars&)>& function, const std::vector<Points>& points,
                          const GradcheckOptions& options = {}) {
  return gradcheck(function, std::vector<ArrayView>(points.begin(), points.end()), options);
}

}  // namespace xtape
