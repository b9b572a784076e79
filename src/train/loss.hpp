/// The results of a model's function `loss`, and of its functions `plain_loss` and `accuracy`.
#pragma once

#include <string>

#include "carried.hpp"

namespace xtape::train {

/// The sum over the targets and their count, which are the first two results of the function. If the function has a
/// single result, it is the mean over the rows of `inputs`. Throws DefinitionError if the function has neither form, or
/// if the results after them are not states.
struct Loss {
  Var sum;
  Var count;
};
Loss loss_of(const Model& model, const NamedVars& inputs, const NamedVars& results,
             const std::string& function = "loss");

/// The function `loss`, recorded for one batch shape.
struct RecordedLoss {
  NamedVars inputs, results;
  Loss loss;
  std::vector<CarriedState> states;
  NamedVars updates = {};  ///< The new values of weights that the definition updates itself.
};
/// Returns the sizes of `loss` for batches of this shape. Throws DefinitionError if the batch does not fit the inputs
/// of `loss`.
NamedSizes loss_sizes(const Model& model, const BatchArrays& batch);
/// `lines` has the meaning of Model::record.
RecordedLoss record_loss(const Model& model, Tape& tape, const NamedSizes& sizes, RecordedLines* lines = nullptr);

/// Checks that `loss` can be recorded for the largest batch and for the batch with the longest rows. Errors of
/// recording propagate.
void check_loss(const Model& model, const Batches& batches);

/// Throws DefinitionError if the function `logits` can read the data but does not return one logit for each label.
void check_labels(const Model& model, const BatchArrays& batch, const std::vector<std::string>& labels);

}  // namespace xtape::train
