/// The results of the functions of a model that compute a loss, and of its functions `plain_loss` and `accuracy`.
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
/// Throws DefinitionError if the function has neither form, or if a result after the first two is not a state. A loss
/// to differentiate must be a float (`is_loss`).
Loss loss_of(const Model& model, const NamedVars& inputs, const NamedVars& results, const std::string& function,
             bool is_loss = true);

/// A loss, recorded for one batch shape.
struct RecordedLoss {
  NamedVars inputs, results;
  Loss loss;
  std::vector<CarriedState> states;
  NamedVars updates = {};  ///< The new values of weights that the definition updates itself.
};
/// Returns the values of the named sizes of the function for batches of this shape. Throws DefinitionError if the batch
/// does not fit the inputs of the function.
NamedSizes loss_sizes(const Model& model, const std::string& function, const BatchArrays& batch);
/// `lines` has the same meaning as in Model::record.
RecordedLoss record_loss(const Model& model, const std::string& function, Tape& tape, const NamedSizes& sizes,
                         RecordedLines* lines = nullptr);

/// Checks that the functions can be recorded for the largest batch and for the batch with the longest rows. Errors of
/// recording propagate.
void check_losses(const Model& model, const std::vector<std::string>& functions, const Batches& batches);

/// Throws DefinitionError if the function `logits` can read the data but does not return one logit for each label.
void check_labels(const Model& model, const std::string& loss, const BatchArrays& batch,
                  const std::vector<std::string>& labels);

}  // namespace xtape::train
