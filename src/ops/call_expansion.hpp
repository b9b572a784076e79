/// The expansion of a call, for whatever looks into an op: players, derivatives, `vmap`.
#pragma once

#include "xtape/op/op.hpp"

namespace xtape {

/// Whether players run the op on halves and int8 as they are, because it moves or casts elements, or plays others.
bool runs_on_any_dtype(const Op& op);

/// Op::expand of the call, with results of the dtypes that its node has. An op that computes with halves computes in
/// float32 and rounds its results, as its kernel would: squares of float16 numbers above 256 are infinite.
Vars expansion(const ExpandCall& call);

}  // namespace xtape
