/// Gradients given by the program in place of those of the ops.
#pragma once

#include <functional>

#include "xtape/tape.hpp"

namespace xtape {

/// Records the gradients of `inputs`: one var per input, of its type, or an empty var where no gradient flows. Gets the
/// inputs, the outputs of the function, and a cotangent for each output (an empty var for an output that is no float).
using GradientRule = std::function<Vars(const Vars& inputs, const Vars& outputs, const Vars& cotangents)>;

/// Calls `function` on `inputs` and returns its results. Their gradients are what `rule` records, in place of the
/// gradients of the ops in `function`. The counterpart of jax.custom_vjp and torch.autograd.Function.
///
/// The rule is called once, now. It may use any vars of the tape, also those that `function` has recorded. Derivatives
/// of higher order are those of the ops in the rule. `jvp` transposes the rule, which must therefore be linear in the
/// cotangents. Other vars that `function` or `rule` uses get no gradient. `vmap`, `checkpoint` and `scan` may contain
/// the call.
///
/// Throws Error without a function, a rule, inputs or results, or if the rule returns another number of vars or a
/// gradient of an input that is no float; ShapeError for a gradient of another type than its input's; HandleError for
/// vars of another tape. Then nothing stays recorded.
Vars custom_gradient(const std::function<Vars(const Vars&)>& function, const GradientRule& rule, const Vars& inputs,
                     Caller caller = Caller::here());

}  // namespace xtape
