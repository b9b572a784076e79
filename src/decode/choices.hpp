/// Selects the most probable tokens from rows of logits.
#pragma once

#include <cstdint>
#include <vector>

#include "xtape/array.hpp"

namespace xtape::decode {

/// Throws DefinitionError unless the result of a step is floats [rows, tokens, classes].
const ArrayView& checked_logits(const ArrayView& result);

struct ScoredToken {
  std::int32_t token = 0;
  double log_probability = 0;
};

/// Sets choices[i] to the `count` most probable tokens by row rows[i] of `logits`, floats [rows, 1, classes], by falling
/// probability (of equals, the lower token first), without the tokens `never` and those of probability 0; fewer if
/// there are not as many. Probabilities are those of the softmax over all classes. Throws Error if the softmax of a row
/// is not defined.
void likeliest(const ArrayView& logits, const std::vector<std::int64_t>& rows, std::int64_t count,
               const std::vector<std::int32_t>& never, int threads, std::vector<std::vector<ScoredToken>>& choices);

}  // namespace xtape::decode
