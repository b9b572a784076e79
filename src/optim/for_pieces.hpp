/// Work on the pieces of an optimiser, in parallel.
#pragma once

#include "optim/piece_optimizer.hpp"
#include "base/threads/threads.hpp"

namespace xtape {

/// Calls f(index, T{}) in parallel for every piece with a gradient. T is the element type of the piece's weight.
template <class F>
void for_pieces(const PieceOptimizer& optimizer, const PieceGradients& gradients, const F& f) {
  const auto count = std::ssize(optimizer.pieces());
  parallel_for(optimizer.threads(), count, 1, [&](std::int64_t begin, std::int64_t finish) {
    for (std::int64_t i = begin; i < finish; ++i) {
      const auto index = static_cast<std::size_t>(i);
      if (gradients[index] == nullptr) continue;
      if (optimizer.dtype(optimizer.pieces()[index]) == Dtype::float64)
        f(index, double{});
      else
        f(index, float{});
    }
  });
}

}  // namespace xtape
