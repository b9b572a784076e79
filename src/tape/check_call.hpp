/// Checks of a call before it becomes a node. Kernels and gradient rules rely on what they ensure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "xtape/op/op.hpp"

namespace xtape {

/// The spec of an operand: the last one also for further operands (Arity::many). The op must have inputs.
inline const InputSpec& spec_of(const Op& op, std::size_t operand) {
  return op.inputs[std::min(operand, op.inputs.size() - 1)];
}
/// Whether operands of this kind are converted to one dtype.
inline bool promotes(Accept accept) {
  return accept == Accept::value || accept == Accept::floating;
}
/// Throws Error unless the op takes that number of operands.
void check_arity(const Op& op, std::size_t count);
/// Throws DtypeError unless all operands that are promoted together have one dtype, since kernels read them as one.
void check_one_dtype(const OpCall& call);
/// The output types of a call that comes from outside the library: checks its operands and attributes as `apply` does,
/// converts nothing, and runs the shape rule. Throws Error, whose text does not begin with the op's name.
std::vector<ValueType> checked_types(const OpCall& call);

}  // namespace xtape
