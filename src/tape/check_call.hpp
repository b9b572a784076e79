/// Checks of a call before it becomes a node. Kernels and gradient rules rely on these checks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "xtape/op/op.hpp"

namespace xtape {

/// Returns the spec of an operand. If the op takes many operands (Arity::many), the last spec also applies to all
/// further operands. The op must have inputs.
inline const InputSpec& spec_of(const Op& op, std::size_t operand) {
  return op.inputs[std::min(operand, op.inputs.size() - 1)];
}
/// Returns whether operands of this kind are converted to one dtype.
inline bool promotes(Accept accept) {
  return accept == Accept::value || accept == Accept::floating;
}
/// Throws Error unless the op takes `count` operands.
void check_arity(const Op& op, std::size_t count);
/// Throws DtypeError if operands that are promoted together have different dtypes. Kernels expect a single dtype.
void check_one_dtype(const OpCall& call);
/// Checks the operands and attributes of a call that `apply` has not recorded, such as one from a file. Makes the same
/// checks as `apply`, but converts nothing. Runs the shape rule and returns the output types. The text of an Error does
/// not begin with the op's name.
std::vector<ValueType> checked_types(const OpCall& call);

}  // namespace xtape
