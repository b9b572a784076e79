/// Whether a function that is played piece by piece gives what it gives for the whole.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "xtape/model.hpp"

namespace xtape::decode {

/// How a function was played, and what came of it.
struct StepCheck {
  std::string unfit;  ///< Why there is nothing to play piece by piece; else empty.
  std::int64_t rows = 0;
  std::int64_t tokens = 0;  ///< Of a row.
  std::vector<std::int64_t> pieces;
  double difference = 0;  ///< The greatest between pieces and whole, as a share of the greatest number of the whole.
};

/// Plays `function`, whose input `tokens` comes piece by piece, on random tokens: whole, and by a predictor in pieces
/// of one token and of several, with rows of different lengths that change places. Sizes that are not `given` are small
/// and unlike the model's own; where the definition refuses them, smaller ones are tried. Throws DefinitionError, with
/// the call at which the first difference enters, where the two differ, or where a place depends on later ones; and
/// what recording and playing throw.
StepCheck check_steps(Model& model, const std::string& function, const NamedSizes& given = {});

/// Gives every weight random numbers, so that nothing is hidden behind a factor of 0: those of vectors around 1, as
/// gains are. (Initialising a model takes longer, and leaves zeros.)
void draw_weights(const Model& model);

}  // namespace xtape::decode
