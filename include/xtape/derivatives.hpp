/// Derivatives that combine `grad`, `jvp` and `vmap`. All are recorded as ordinary nodes, and are differentiable again.
#pragma once

#include <cstdint>

#include "xtape/tape.hpp"

namespace xtape {

/// Records the product of a Hessian and a direction: H v, where H is the Hessian of a scalar `output` with respect to
/// `inputs`, and v are the `directions`. The product is the tangent of the gradient (Pearlmutter, 1994, Fast exact
/// multiplication by the Hessian). `directions` have the types of `inputs`. Returns one var per input. Costs about as
/// much as two gradients. Errors are those of `grad` and `jvp`.
Vars hvp(const Var& output, const Vars& inputs, const Vars& directions, Caller caller = Caller::here());

/// The method of computing a Jacobian.
enum class JacobianMode : std::uint8_t {
  automatic,  ///< `forward` if the inputs have fewer elements than the output, otherwise `reverse`.
  forward,    ///< One tangent for each element of the inputs.
  reverse     ///< One cotangent for each element of the output.
};

struct JacobianOptions {
  JacobianMode mode = JacobianMode::automatic;
  /// The number of tangents or cotangents computed at once. 0: all. The memory of intermediate values is proportional
  /// to this number.
  std::int64_t chunk_size = 0;
};

/// Records the Jacobian of `output` with respect to each input. Returns one var per input, of the output's dtype. The
/// shape of a Jacobian is the shape of the output followed by the shape of the input. A Jacobian is zero where the
/// output does not depend on the input. The tangents or cotangents form a batch (`vmap`). With a `chunk_size`, a scan
/// processes them in chunks.
///
/// Throws DtypeError if a var is not a float, HandleError in the same cases as `grad`, Error if chunk_size is negative,
/// and ShapeError if the result has too many axes or elements.
Vars jacobian(const Var& output, const Vars& inputs, const JacobianOptions& options = {},
              Caller caller = Caller::here());
/// The same for a single input.
Var jacobian(const Var& output, const Var& input, const JacobianOptions& options = {}, Caller caller = Caller::here());

/// Records the Hessian of a scalar output with respect to one input, as the Jacobian of the gradient. The Hessian has
/// the axes of the input twice: [2, 3, 2, 3] for an input [2, 3]. The automatic mode is forward (forward over reverse).
/// Throws ShapeError if the output does not have exactly one element. Errors of `jacobian` propagate.
Var hessian(const Var& output, const Var& input, const JacobianOptions& options = {}, Caller caller = Caller::here());

}  // namespace xtape
