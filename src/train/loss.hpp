/// What the function `loss` of a model, and others like it, give.
#pragma once

#include <string>

#include "xtape/model.hpp"
#include "xtape/text.hpp"

namespace xtape::train {

/// The sum and count that a function gives. Throws DefinitionError where it gives anything else.
struct Loss {
  Var sum;
  Var count;
};
Loss loss_of(const Model& model, const NamedVars& results, const std::string& function = "loss");

/// Records `loss` for the largest of the batches and for those with the longest rows, which may be smaller ones, for
/// the errors that this may throw.
void check_loss(const Model& model, const Batches& batches);

}  // namespace xtape::train
