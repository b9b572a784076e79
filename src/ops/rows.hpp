/// Rows and recordings that the ops' gradients and expansions share.
#pragma once

#include "xtape/op.hpp"

namespace xtape {

/// The adjoint of broadcasting: `x` summed over the axes along which `shape` broadcasts to x's shape.
Var sum_to(const Var& x, const Shape& shape);

}  // namespace xtape
