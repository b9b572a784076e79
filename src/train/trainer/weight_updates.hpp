/// Weights that the definition updates itself ("update" of a block), such as running means.
#pragma once

#include <string>
#include <vector>

#include "xtape/model.hpp"

namespace xtape::train {

/// Every play of an update computes new values from the same old values. The update assigns their mean over all plays,
/// that is, over the micro-batches of all shards. The mean is summed by shards, so its bits do not depend on the number
/// of ranks.
class WeightUpdates {
 public:
  /// `names` are the weights to update.
  WeightUpdates(Model& model, const std::vector<std::string>& names);
  /// Returns how many numbers a shard reports. The first is the number of its plays. The others are the sums, over
  /// these plays, of the new elements of the weights.
  std::size_t numbers() const { return numbers_; }
  /// Adds a play to the `numbers` of its shard. If the recording does not update a weight, adds the weight's old value.
  void add(const Player& player, const NamedVars& updates, double* numbers) const;
  /// Returns the name of the first weight whose new value is not finite, or "" if there is none. `sums` are the numbers
  /// of add(), summed over all shards.
  std::string not_finite(const double* sums) const;
  void assign(const double* sums);

 private:
  template <class Visit>
  void for_each(const Visit& visit) const;
  Model& model_;  // its arrays may be replaced, so they are looked up at each use
  std::vector<std::string> names_;
  std::size_t numbers_ = 0;
};

}  // namespace xtape::train
