/// Gradients, recorded as nodes on the tape of the values that they are gradients of.
#pragma once

#include <type_traits>

#include "xtape/tape.hpp"

namespace xtape {

/// Where `grad` gives an error by default. The names are those of torch.autograd.grad.
struct GradOptions {
  bool allow_unused = false;       ///< An input that no gradient reaches gets an empty var.
  bool materialize_grads = false;  ///< An input that no gradient reaches gets zeros.
  /// Outputs without cotangents may have several elements or none: the gradient is that of the sum of all.
  bool sum_outputs = false;
};

/// Records the gradient of sum_i <cotangents[i], outputs[i]> with respect to `inputs`, by a reverse sweep, as ordinary
/// nodes of the same tape. Returns one var per input, of the input's type. Inputs may be any vars, also intermediate
/// values. Gradients are differentiable again.
///
/// Empty `cotangents` mean ones; then each output has one element, as a loss has. A gradient reaches an input if an
/// output depends on it through differentiable ops.
///
/// The sweep visits the nodes from the first of `inputs` to the last of `outputs` once each, in a loop. An op without a
/// gradient rule is differentiated through its expansion.
///
/// Throws DtypeError if an output or input is not a float, ShapeError if a cotangent's type is not its output's or an
/// output without cotangent has not one element, HandleError if a var is empty, stale or of another tape, and Error if
/// there is no output, the number of cotangents is wrong, no gradient reaches an input, or a differentiable op on the
/// way has neither a gradient rule nor an expansion. Then nothing is recorded.
Vars grad(const Vars& outputs, const Vars& inputs, const Vars& cotangents = {}, const GradOptions& options = {},
          Caller caller = Caller::here());
/// The same for one output.
Vars grad(const Var& output, const Vars& inputs, const GradOptions& options = {}, Caller caller = Caller::here());
/// The same for one output and one input: the gradient.
template <class Input, class = std::enable_if_t<std::is_base_of<Var, Input>::value>>
Var grad(const Var& output, const Input& input, const GradOptions& options = {}, Caller caller = Caller::here()) {
  return grad(output, Vars{input}, options, caller)[0];
}
/// The same by named vars, such as the weights of a model (Model::weights): the gradients have their names.
NamedVars grad(const Vars& outputs, const NamedVars& inputs, const Vars& cotangents = {},
               const GradOptions& options = {}, Caller caller = Caller::here());
NamedVars grad(const Var& output, const NamedVars& inputs, const GradOptions& options = {},
               Caller caller = Caller::here());

/// Records the tangents of `outputs`: the sum over the inputs of the Jacobian times tangents[i] (forward mode), as
/// ordinary nodes of the same tape. Returns one var per output, of its type; zeros if no input reaches it. Inputs may be
/// any vars, also intermediate values. Tangents are differentiable again.
///
/// The sweep visits the nodes from the first of `inputs` to the last of `outputs` once each, in a loop. An op with
/// neither Op::tangent nor a gradient rule is differentiated through its expansion.
///
/// Throws DtypeError if a var is not a float, ShapeError if a tangent's type is not its input's, HandleError if a var is
/// empty, stale or of another tape, and Error if there is no output or input, the number of tangents is wrong, or a
/// differentiable op on the way has neither a rule nor an expansion. Then nothing is recorded.
Vars jvp(const Vars& outputs, const Vars& inputs, const Vars& tangents, Caller caller = Caller::here());

}  // namespace xtape
