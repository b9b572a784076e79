/// What is computed from the gradients of single examples, without them where that is cheaper. Private to grad.
#pragma once

#include "xtape/tape.hpp"

namespace xtape {

/// The squared norm of each example's slice of `x` [b, …]: [b].
Var squared_norms(const Var& x);

/// The sum over the examples of weights[b] * x[b]; `x` is [b, …], `weights` [b].
Var weighted_sum(const Var& x, const Var& weights);

}  // namespace xtape
