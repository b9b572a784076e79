/// Gradients and tangents, recorded as nodes on the tape of the differentiated values.
#pragma once

#include <type_traits>

#include "xtape/tape.hpp"

namespace xtape {

/// Options that replace errors of `grad`. The names are those of torch.autograd.grad.
struct GradOptions {
  bool allow_unused = false;       ///< If no gradient reaches an input, the result is an empty var.
  bool materialize_grads = false;  ///< If no gradient reaches an input, the result is zeros.
  /// Outputs without cotangents may have any number of elements. The gradient is then that of the sum of all elements.
  bool sum_outputs = false;
};

/// Records the gradient of sum_i <cotangents[i], outputs[i]> with respect to `inputs` (reverse mode), as ordinary nodes
/// of the same tape. Returns one var per input, of the input's type. Inputs may be any vars, including intermediate
/// values. Gradients are differentiable again.
///
/// Empty `cotangents` mean ones. Each output must then have exactly one element, like a loss. A gradient reaches an
/// input if an output depends on it through differentiable ops.
///
/// The sweep visits the nodes from the first of `inputs` to the last of `outputs` once each, in a loop. If an op has no
/// gradient rule, the sweep differentiates its expansion.
///
/// Throws DtypeError if an output or input is not a float. Throws ShapeError if a cotangent's type is not that of its
/// output, or an output without cotangent does not have exactly one element. Throws HandleError if a var is empty,
/// stale or belongs to another tape. Throws Error if there is no output, the number of cotangents is wrong, no gradient
/// reaches an input, or a differentiable op on the path has neither a gradient rule nor an expansion. After an error,
/// nothing is recorded.
Vars grad(const Vars& outputs, const Vars& inputs, const Vars& cotangents = {}, const GradOptions& options = {},
          Caller caller = Caller::here());
/// The same for a single output.
Vars grad(const Var& output, const Vars& inputs, const GradOptions& options = {}, Caller caller = Caller::here());
/// The same for a single output and input. Returns the gradient.
template <class Input, class = std::enable_if_t<std::is_base_of<Var, Input>::value>>
Var grad(const Var& output, const Input& input, const GradOptions& options = {}, Caller caller = Caller::here()) {
  return grad(output, Vars{input}, options, caller)[0];
}
/// The same for named vars, such as the weights of a model (Model::weights). The gradients have the same names.
NamedVars grad(const Vars& outputs, const NamedVars& inputs, const Vars& cotangents = {},
               const GradOptions& options = {}, Caller caller = Caller::here());
NamedVars grad(const Var& output, const NamedVars& inputs, const GradOptions& options = {},
               Caller caller = Caller::here());

/// Records the tangents of `outputs` (forward mode), as ordinary nodes of the same tape. A tangent is the sum over the
/// inputs of the Jacobian times tangents[i]. Returns one var per output, of its type. The tangent is zeros if the
/// output depends on no input. Inputs may be any vars, including intermediate values. Tangents are differentiable
/// again.
///
/// The sweep visits the nodes from the first of `inputs` to the last of `outputs` once each, in a loop. If an op has
/// neither Op::tangent nor a gradient rule, the sweep differentiates its expansion.
///
/// Throws DtypeError if a var is not a float, ShapeError if a tangent's type is not that of its input, HandleError if a
/// var is empty, stale or belongs to another tape. Throws Error if there is no output or input, the number of tangents
/// is wrong, or a differentiable op on the path has neither a rule nor an expansion. After an error, nothing is
/// recorded.
Vars jvp(const Vars& outputs, const Vars& inputs, const Vars& tangents, Caller caller = Caller::here());

}  // namespace xtape
