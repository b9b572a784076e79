/// The loops of the elementwise ops.
#pragma once

#include <string>

#include "kernels/table/kernel_form.hpp"
#include "xtape/array.hpp"
#include "xtape/op/kernel.hpp"

namespace xtape {

/// Returns the loop of the elementwise op of this name. Throws Error if there is none.
TileFunction make_tile(const std::string& op, const KernelForm& form);

/// Returns the loop that converts elements.
TileFunction make_cast(Dtype from, Dtype to);

// Loops of two ops.

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
