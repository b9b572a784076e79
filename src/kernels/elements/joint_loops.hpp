/// Loops of two ops.
#pragma once

#include <string>

#include "xtape/array.hpp"
#include "xtape/op/kernel.hpp"

namespace xtape {

/// Two elementwise ops on floats, of which the second reads the result of the first: then(first(a, b), c), or
/// then(c, first(a, b)).
struct JointForm {
  const std::string& first;
  const std::string& then;
  std::size_t operand = 0;  ///< The operand of `then` that is the result of `first`.
  Dtype dtype = Dtype::float32;
  bool single = false;  ///< Whether `a` is one element for all elements of the output.
};

/// Returns the loop of both ops, with operands a, b and c. Its results have the bits of two loops. Returns an empty
/// function if the pair has no such loop.
TileFunction make_joint_loop(const JointForm& form);

}  // namespace xtape
