/// Noise on sums of gradients.
#pragma once

#include "optim/piece_optimizer.hpp"
#include "xtape/distributed.hpp"

namespace xtape::ranks {

/// Adds the noise of the piece to `sums`, which holds the summed gradients of the elements of the piece.
void add_noise(const Store& weights, const Piece& piece, const GradientNoise& noise, void* sums);

}  // namespace xtape::ranks
