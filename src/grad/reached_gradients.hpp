/// Gradients where there are any.
#pragma once

#include "xtape/grad.hpp"

namespace xtape {

/// As grad(output, inputs), but an input that the output does not reach has an empty var in place of zeros: what is
/// trained can leave it alone.
Vars reached_gradients(const Var& output, const Vars& inputs);

}  // namespace xtape
