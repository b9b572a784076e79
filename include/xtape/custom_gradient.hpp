/// Custom gradients, which replace those of the ops.
#pragma once

#include <functional>

#include "xtape/tape.hpp"

namespace xtape {

/// Records the gradients of `inputs` and returns one var per input, of its type. A var is empty if no gradient flows.
/// The arguments are the inputs, the outputs of the function, and a cotangent per output. The cotangent of an output
/// that is not a float is an empty var.
using GradientRule = std::function<Vars(const Vars& inputs, const Vars& outputs, const Vars& cotangents)>;

/// Calls `function` on `inputs` and returns its results. `rule` records the gradients of the inputs and replaces the
/// gradients of the ops in `function`. custom_gradient corresponds to jax.custom_vjp and torch.autograd.Function.
///
/// custom_gradient calls the rule once, immediately. The rule may use any vars of the tape, including those that
/// `function` has recorded. Derivatives of higher order are those of the ops in the rule. `jvp` transposes the rule, so
/// the rule must be linear in the cotangents. Other vars that `function` or `rule` uses get no gradient. `vmap`,
/// `checkpoint` and `scan` may contain the call.
///
/// Throws Error if the function, the rule, the inputs or the results are empty. Throws Error if the rule returns the
/// wrong number of vars, or a gradient of an input that is not a float. Throws ShapeError if a gradient's type is not
/// that of its input, HandleError if a var belongs to another tape. After an error, nothing stays recorded.
Vars custom_gradient(const std::function<Vars(const Vars&)>& function, const GradientRule& rule, const Vars& inputs,
                     Caller caller = Caller::here());

}  // namespace xtape
