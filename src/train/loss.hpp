/// A model's functions, for the arrays of a batch.
#pragma once

#include <vector>

#include "xtape/model.hpp"
#include "xtape/text.hpp"

namespace xtape::train {

/// The sizes that a batch's arrays give the names in the signature of `function`. Throws DefinitionError where the
/// function's inputs are not the batch's arrays.
NamedSizes sizes_of(const Model& model, const std::string& function, const Batch& batch);

/// The sum and count that function `loss` gives. Throws DefinitionError where it gives anything else.
struct Loss {
  Var sum;
  Var count;
};
Loss loss_of(const Model& model, const NamedVars& results);

/// Records `loss` for the shape of the batches, for the errors that this may throw.
void check_loss(const Model& model, const Batches& batches);

/// Feeds the batch's arrays to the inputs of the same names.
std::vector<Feed> feeds_of(const NamedVars& inputs, const Batch& batch);

}  // namespace xtape::train
