/// What an Optimizer has.
#pragma once

#include "piece_optimizer.hpp"

namespace xtape {

struct Optimizer::Data {
  PieceOptimizer pieces;
  PieceGradients gradients;

  Data(const Store& weights, const std::vector<OptimizerGroup>& groups, int threads)
      : pieces(weights, groups, threads), gradients(pieces.pieces().size()) {}
  /// Throws unless there is a gradient, which may be empty, for each weight.
  void check(const std::vector<ArrayView>& views) const;
  void find(const std::vector<ArrayView>& views);
};

}  // namespace xtape
