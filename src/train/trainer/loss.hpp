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

// The sums of an update, and the weights that the definition updates itself ("update" of a block), such as running
// means.

/// What the plays of an update add up to, for one shard or for all shards.
struct UpdateSums {
  double interrupted = 0;                 ///< The number of shards whose rank is asked to stop.
  double plays = 0;                       ///< The number of plays.
  double loss = 0;                        ///< The sum of losses.
  double count = 0;                       ///< The number of targets.
  std::vector<double> not_finite_states;  ///< Per carried state: the number of shards in which it is not finite.
  std::vector<double> updates;            ///< The new elements of the weights of WeightUpdates.

  /// Calls visit(number) for every number. Each rank visits them in the same order.
  template <class Visit>
  void for_each(const Visit& visit) {
    for (double* number : {&interrupted, &plays, &loss, &count}) visit(*number);
    for (double& number : not_finite_states) visit(number);
    for (double& number : updates) visit(number);
  }
};

/// Every play of an update computes new values from the same old values. The update assigns their mean over all plays,
/// that is, over the micro-batches of all shards. The mean is summed by shards, so its bits do not depend on the number
/// of ranks.
class WeightUpdates {
 public:
  /// `names` are the weights to update.
  WeightUpdates(Model& model, const std::vector<std::string>& names);
  /// Returns the number of elements of all these weights.
  std::size_t elements() const { return elements_; }
  /// Adds the new elements of a play to `sums`. If the recording does not update a weight, adds the weight's old value.
  void add(const Player& player, const NamedVars& updates, std::vector<double>& sums) const;
  /// Returns the name of the first weight whose new value is not finite, or "" if there is none.
  std::string first_not_finite(const UpdateSums& sums) const;
  void assign(const UpdateSums& sums);

 private:
  template <class Visit>
  void for_each(const Visit& visit) const;
  Model& model_;  // its arrays may be replaced, so they are looked up at each use
  std::vector<std::string> names_;
  std::size_t elements_ = 0;
};

}  // namespace xtape::train
