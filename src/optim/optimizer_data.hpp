/// The data members of an Optimizer.
#pragma once

#include "optim/piece_optimizer.hpp"

namespace xtape {

struct Optimizer::Data {
  PieceOptimizer pieces;
  PieceGradients gradients;

  Data(const Store& weights, const std::vector<OptimizerGroup>& groups, int threads)
      : pieces(weights, groups, threads), gradients(pieces.pieces().size()) {}
  /// Throws if `views` do not have one entry for each weight. The entry is the gradient, or empty.
  void check(const std::vector<ArrayView>& views) const;
  void find(const std::vector<ArrayView>& views);
};

}  // namespace xtape
