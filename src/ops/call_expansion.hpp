/// The expansion of a call, for code that looks inside ops: players, derivatives, `vmap`.
#pragma once

#include "xtape/op/op.hpp"

namespace xtape {

/// Returns whether players can run the op directly on bfloat16, float16 and int8, because it only moves or casts
/// elements, or plays other ops.
bool runs_on_any_dtype(const Op& op);

/// Returns the result of Op::expand for the call, in the dtypes of its node. An op that computes with half-precision
/// arrays computes in float32 and rounds its results, as its kernel would. Otherwise, squares of float16 numbers above
/// 256 would be infinite.
Vars expansion(const ExpandCall& call);

}  // namespace xtape
