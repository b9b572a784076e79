/// The expansion of a call, for code that looks inside ops: players, derivatives, `vmap`.
#pragma once

#include "xtape/op/op.hpp"

namespace xtape {

/// Returns whether players can run the op directly on bfloat16, float16 and int8, because it only moves or casts
/// elements, or plays other ops.
bool runs_on_any_dtype(const Op& op);

/// Returns the result of Op::expand for the call, in the dtypes of its node. If the op computes with half-precision
/// arrays, its expansion computes in float32 and rounds the results, as the op's kernel would. In float16, squares of
/// numbers above 256 would be infinite.
Vars expansion(const ExpandCall& call);

}  // namespace xtape
