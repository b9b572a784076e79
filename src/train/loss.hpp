/// The results of the function `loss` of a model, and of `plain_loss` and `accuracy`.
#pragma once

#include <string>

#include "carried.hpp"

namespace xtape::train {

/// The sum over the targets and their count, which are the first two results of the function. A single result is the
/// mean over the rows of `inputs`. Throws DefinitionError if the function does not have them, or has other results than
/// states after them.
struct Loss {
  Var sum;
  Var count;
};
Loss loss_of(const Model& model, const NamedVars& inputs, const NamedVars& results,
             const std::string& function = "loss");

/// `loss`, recorded for one batch shape.
struct RecordedLoss {
  NamedVars inputs, results;
  Loss loss;
  std::vector<CarriedState> states;
  NamedVars updates = {};  ///< The new values of weights that the definition updates itself.
};
/// The sizes of `loss` for batches of this shape. Throws DefinitionError if the batch does not fit its inputs.
NamedSizes loss_sizes(const Model& model, const BatchArrays& batch);
/// `lines`: as for Model::record.
RecordedLoss record_loss(const Model& model, Tape& tape, const NamedSizes& sizes, RecordedLines* lines = nullptr);

/// Checks that `loss` can be recorded for the largest batch and for those with the longest rows, which may be other
/// batches. Throws the errors of recording.
void check_loss(const Model& model, const Batches& batches);

/// Checks that `logits`, if it takes what the data has, gives one for each of the labels. Throws DefinitionError.
void check_labels(const Model& model, const BatchArrays& batch, const std::vector<std::string>& labels);

}  // namespace xtape::train
