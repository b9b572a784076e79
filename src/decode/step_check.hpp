/// Checks that a function gives the same results, no matter whether it is played piece by piece or as a whole.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "xtape/model.hpp"

namespace xtape::decode {

/// The way in which a function was played, and the result.
struct StepCheck {
  std::string unfit;  ///< The reason if the function cannot be played piece by piece; otherwise empty.
  std::int64_t rows = 0;
  std::int64_t tokens = 0;           ///< The number of tokens of a row.
  std::vector<std::int64_t> pieces;  ///< The number of tokens of each piece.
  /// The largest difference between pieces and whole, relative to the largest magnitude of the whole.
  double difference = 0;
};

/// Plays `function` on random tokens: once on whole rows, and once piece by piece with a predictor. There are pieces of
/// one token and pieces of several tokens. The rows have different lengths and are reordered. Sizes that are not
/// `given` are small and differ from the model's own sizes. If the definition rejects them, smaller sizes are tried.
/// Throws DefinitionError if the results differ or if a position depends on later positions. The message names the
/// first call whose values differ. Errors of recording and playing propagate.
StepCheck check_steps(Model& model, const std::string& function, const NamedSizes& given = {});

/// Fills every weight with random numbers, so that no factor of 0 hides a difference. The elements of vectors are
/// around 1, because many vectors are gains. Initialising the model would take longer and would leave zeros.
void draw_weights(const Model& model);

}  // namespace xtape::decode
