/// What the function `loss` of a model, and others like it, give.
#pragma once

#include <string>

#include "carried.hpp"

namespace xtape::train {

/// The sum and count that a function gives first. Throws DefinitionError where it does not, or gives anything else but
/// states after them.
struct Loss {
  Var sum;
  Var count;
};
Loss loss_of(const Model& model, const NamedVars& results, const std::string& function = "loss");

/// `loss`, recorded for one shape of batches.
struct RecordedLoss {
  NamedVars inputs, results;
  Loss loss;
  std::vector<CarriedState> states;
};
/// The sizes of `loss` for batches of this shape. Throws DefinitionError where the batch is not what `loss` takes.
NamedSizes loss_sizes(const Model& model, const Batch& batch);
RecordedLoss record_loss(const Model& model, Tape& tape, const NamedSizes& sizes);

/// Records `loss` for the largest of the batches and for those with the longest rows, which may be smaller ones, for
/// the errors that this may throw.
void check_loss(const Model& model, const Batches& batches);

}  // namespace xtape::train
