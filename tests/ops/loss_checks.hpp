/// Checks that all losses have in common.
#pragma once

#include "golden.hpp"
#include "play.hpp"

namespace xtape {

/// Golden values, and gradients by all points of every reduction. `operands` are those of the op at the points.
inline void check_loss(const char* op, const std::vector<xt::xarray<double>>& points, const Attributes& attributes,
                       const std::function<std::vector<Operand>(const Vars&)>& operands) {
  check_golden("ops_losses.json", op, 1e-10, 1e-4);
  for (const char* reduction : {"none", "mean", "sum"}) {
    Attributes all = attributes;
    all.set("reduction", std::string(reduction));
    check_gradients([&](const Vars& x) { return apply(builtin_ops().at(op), operands(x), all); }, points);
  }
}

}  // namespace xtape
