/// Derivatives that combine `grad`, `jvp` and `vmap`. All are recorded as ordinary nodes and are differentiable again.
#pragma once

#include <cstdint>

#include "xtape/tape.hpp"

namespace xtape {

/// The product of the Hessian of a scalar `output` and a direction: the tangent of its gradient (Pearlmutter, 1994, Fast
/// exact multiplication by the Hessian). `directions` have the types of `inputs`. Returns one var per input. Costs about
/// as much as two gradients. Throws as `grad` and `jvp` do.
Vars hvp(const Var& output, const Vars& inputs, const Vars& directions, Caller caller = Caller::here());

/// How a Jacobian is computed.
enum class JacobianMode : std::uint8_t {
  automatic,  ///< forward if the inputs have fewer elements than the output, else reverse.
  forward,    ///< A tangent for each element of the inputs.
  reverse     ///< A cotangent for each element of the output.
};

struct JacobianOptions {
  JacobianMode mode = JacobianMode::automatic;
  /// How many tangents or cotangents are computed at once; 0: all. The memory of intermediate values is proportional to
  /// it.
  std::int64_t chunk_size = 0;
};

/// The Jacobian of `output` by each input: one var per input, of the output's dtype and of the shape of the output followed
/// by that of the input, zeros where the output does not depend on the input. The tangents or cotangents are a batch (`vmap`); with a
/// `chunk_size`, a scan goes over its chunks.
///
/// Throws DtypeError if a var is not a float, HandleError as `grad` does, Error if chunk_size is negative, and
/// ShapeError if the result has too many axes or elements.
Vars jacobian(const Var& output, const Vars& inputs, const JacobianOptions& options = {},
              Caller caller = Caller::here());
/// The same for one input.
Var jacobian(const Var& output, const Var& input, const JacobianOptions& options = {}, Caller caller = Caller::here());

/// The Hessian of a scalar output by one input: the Jacobian of its gradient, of the input's shape twice, by default in
/// forward mode (forward over reverse). Throws
/// ShapeError unless the output has one element, and as `jacobian` does.
Var hessian(const Var& output, const Var& input, const JacobianOptions& options = {}, Caller caller = Caller::here());

}  // namespace xtape
