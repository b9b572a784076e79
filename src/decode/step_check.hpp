/// Checks that a function gives the same results when it is played piece by piece as when it is played as a whole.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "xtape/model.hpp"

namespace xtape::decode {

/// How a function was played, and the result.
struct StepCheck {
  std::string unfit;  ///< Why the function cannot be played piece by piece; empty if it can.
  std::int64_t rows = 0;
  std::int64_t tokens = 0;           ///< The tokens of a row.
  std::vector<std::int64_t> pieces;  ///< The number of tokens of each piece.
  double difference = 0;  ///< The largest between pieces and whole, relative to the largest magnitude of the whole.
};

/// Plays `function`, whose input `tokens` is divided into pieces, on random tokens: as a whole, and by a predictor in
/// pieces of one token and of several, with rows of different lengths that are reordered. Sizes that are not `given`
/// are small and differ from the model's own; if the definition refuses them, smaller ones are tried. Throws
/// DefinitionError if the two differ, or if a position depends on later ones; the message names the first call whose
/// values differ. Also throws what recording and playing throw.
StepCheck check_steps(Model& model, const std::string& function, const NamedSizes& given = {});

/// Fills every weight with random numbers, so that no factor of 0 hides a difference. Those of vectors are around 1, as
/// gains are. (Initialising a model takes longer, and leaves zeros.)
void draw_weights(const Model& model);

}  // namespace xtape::decode
