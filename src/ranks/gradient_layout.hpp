/// The locations of the gradients of all weights in one block of memory, and the rank that sums each piece.
#pragma once

#include <cstddef>
#include <vector>

#include "optim/piece_optimizer.hpp"

namespace xtape::ranks {

/// A range of bytes.
struct Bytes {
  std::size_t first = 0;
  std::size_t last = 0;
  std::size_t count() const { return last - first; }
};

/// Gradients in the order in which they are computed. They form buckets that are sent as soon as they are complete. The
/// pieces of a bucket are distributed to all ranks in order, so the pieces of each rank are adjacent in memory.
struct GradientLayout {
  struct Bucket {
    std::vector<std::size_t> weights;
    std::vector<std::size_t> pieces;  ///< Indices, in the order of memory.
    std::vector<Bytes> of_rank;       ///< The location of the pieces of each rank. Empty if the rank has no pieces.
  };
  std::vector<Piece> pieces;           ///< In the order of weights.
  std::vector<std::size_t> piece_at;   ///< Per piece: its first byte in the memory.
  std::vector<int> owner;              ///< Per piece: its rank.
  std::vector<std::size_t> weight_at;  ///< Per weight: its first byte, a multiple of 64.
  std::vector<Bucket> buckets;
  std::size_t bytes = 0;  ///< The bytes of all gradients.
};

/// `order` contains the indices of the weights in the order in which their gradients are computed.
GradientLayout layout_of(const Store& weights, const std::vector<std::size_t>& order, int ranks);

}  // namespace xtape::ranks
