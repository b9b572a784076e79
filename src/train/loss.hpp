/// What the function `loss` of a model gives.
#pragma once

#include "xtape/model.hpp"
#include "xtape/text.hpp"

namespace xtape::train {

/// The sum and count that function `loss` gives. Throws DefinitionError where it gives anything else.
struct Loss {
  Var sum;
  Var count;
};
Loss loss_of(const Model& model, const NamedVars& results);

/// Records `loss` for the shape of the batches, for the errors that this may throw.
void check_loss(const Model& model, const Batches& batches);

}  // namespace xtape::train
