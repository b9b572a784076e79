/// The results of a model's function `loss`, and of its functions `plain_loss` and `accuracy`.
#pragma once

#include <string>
#include <vector>

#include "train/trainer/carried.hpp"
#include "xtape/model.hpp"

namespace xtape::train {

/// The sum of a measure over the targets, and the number of targets.
struct Loss {
  Var sum;
  Var count;
};
/// Returns the sum and the count from the results of the function. They are its first two results. If the function has
/// a single result, this result is the mean over the rows of `inputs`, and loss_of converts it to a sum and a count.
/// Throws DefinitionError if the function has neither form, or if a result after the first two is not a state.
Loss loss_of(const Model& model, const NamedVars& inputs, const NamedVars& results,
             const std::string& function = "loss");

/// The function `loss`, recorded for one batch shape.
struct RecordedLoss {
  NamedVars inputs, results;
  Loss loss;
  std::vector<CarriedState> states;
  NamedVars updates = {};  ///< The new values of weights that the definition updates itself.
};
/// Returns the values of the named sizes of the function `loss` for batches of this shape. Throws DefinitionError if
/// the batch does not fit the inputs of `loss`.
NamedSizes loss_sizes(const Model& model, const BatchArrays& batch);
/// `lines` has the same meaning as in Model::record.
RecordedLoss record_loss(const Model& model, Tape& tape, const NamedSizes& sizes, RecordedLines* lines = nullptr);

/// Checks that `loss` can be recorded for the largest batch and for the batch with the longest rows. Errors of
/// recording propagate.
void check_loss(const Model& model, const Batches& batches);

/// Throws DefinitionError if the function `logits` can read the data but does not return one logit for each label.
void check_labels(const Model& model, const BatchArrays& batch, const std::vector<std::string>& labels);

}  // namespace xtape::train
