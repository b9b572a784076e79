/// Gradients, recorded as nodes on the tape of the values that they are gradients of.
#pragma once

#if defined(XTAPE_LAYER) && XTAPE_LAYER < 5
#error "this layer of xtape may not see the grad layer"
#endif

#include "xtape/tape.hpp"

namespace xtape {

/// Records the gradient of sum_i <cotangents[i], outputs[i]> with respect to `inputs`, by a reverse sweep, as ordinary
/// nodes of the same tape. Returns one var per input, of the input's type: zeros if no output depends on it. Inputs may
/// be any vars, also intermediate values. Empty `cotangents` mean ones: the gradient of the sum of all elements of all
/// outputs. Gradients are differentiable again.
///
/// The sweep visits the nodes from the first of `inputs` to the last of `outputs` once each, in a loop. An op without a
/// gradient rule is differentiated through its expansion.
///
/// Throws DtypeError if an output or input is not a float, ShapeError if a cotangent's type is not its output's,
/// HandleError if a var is empty, stale or of another tape, and Error if there is no output, the number of cotangents
/// is wrong, or a differentiable op on the way has neither a gradient rule nor an expansion. Then nothing is recorded.
Vars grad(const Vars& outputs, const Vars& inputs, const Vars& cotangents = {}, Caller caller = Caller::here());
/// The same for one output.
Vars grad(const Var& output, const Vars& inputs, Caller caller = Caller::here());

}  // namespace xtape
