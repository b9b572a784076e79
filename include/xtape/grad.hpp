/// Gradients, recorded on the tape that they are gradients of.
#pragma once

#if defined(XTAPE_LAYER) && XTAPE_LAYER < 5
#error "this layer of xtape may not see the grad layer"
#endif

#include "xtape/tape.hpp"

namespace xtape {

/// Appends the backward computation of sum_i <cotangents[i], outputs[i]> with respect to `inputs`, as ordinary nodes, and
/// returns one var per input, of its type. Empty `cotangents` stand for ones. An input that the outputs do not reach gets
/// zeros. Throws DtypeError where an output or input is not a float, ShapeError where a cotangent has not its output's shape.
Vars grad(const Vars& outputs, const Vars& inputs, const Vars& cotangents = {}, Caller caller = Caller::here());
Vars grad(const Var& output, const Vars& inputs, Caller caller = Caller::here());

}  // namespace xtape
