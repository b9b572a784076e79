/// Reductions of per-example gradients that avoid computing these gradients where this is cheaper. Private to grad.
#pragma once

#include "xtape/tape.hpp"

namespace xtape {

/// Returns [b]: the squared norm of each example's slice of `x` [b, …].
Var squared_norms(const Var& x);

/// Returns the sum over the examples of weights[b] * x[b]. `x` is [b, …], `weights` is [b].
Var weighted_sum(const Var& x, const Var& weights);

}  // namespace xtape
