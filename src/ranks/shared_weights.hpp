/// The trained weights in memory that the ranks of a host share, and the exchange of updated weights between hosts.
#pragma once

#include "ranks/gradient_sum.hpp"
#include "ranks/rank_group.hpp"
#include "xtape/model.hpp"

namespace xtape::ranks {

class SharedWeights {
 public:
  /// Moves the weights with these names to shared memory. They get the values of rank 0.
  SharedWeights(Model& model, const std::vector<std::string>& names, RankGroup& group);
  const Store& weights() const { return weights_; }
  /// Gives all weights to all ranks, after every rank has updated the pieces that it owns.
  void exchange(const GradientLayout& layout);

 private:
  void broadcast();
  RankGroup* group_;
  Store weights_;
};

}  // namespace xtape::ranks
