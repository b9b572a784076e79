/// Gradients of the inputs that an output depends on.
#pragma once

#include "xtape/grad.hpp"

namespace xtape {

/// As grad(output, inputs), but an empty var instead of zeros for an input that the output does not depend on, so that
/// training can skip it.
Vars reached_gradients(const Var& output, const Vars& inputs);

}  // namespace xtape
