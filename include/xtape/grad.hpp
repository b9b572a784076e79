/// Gradients, recorded on the tape that they are gradients of.
#pragma once

#if defined(XTAPE_LAYER) && XTAPE_LAYER < 4
#error "this layer of xtape may not see the grad layer"
#endif

#include <functional>
#include <string>
#include <vector>

#include "xtape/tape.hpp"

namespace xtape {

/// Appends the backward computation of sum_i <cotangents[i], outputs[i]> with respect to `inputs`, as ordinary nodes, and
/// returns one var per input, of its type. Empty `cotangents` stand for ones. An input that the outputs do not reach gets
/// zeros. Throws DtypeError where an output or input is not a float, ShapeError where a cotangent has not its output's shape.
Vars grad(const Vars& outputs, const Vars& inputs, const Vars& cotangents = {});
Vars grad(const Var& output, const Vars& inputs);

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
GradcheckReport gradcheck(const std::function<Vars(const Vars&)>& function, const std::vector<xt::xarray<double>>& points,
                          const GradcheckOptions& options = {});

}  // namespace xtape
