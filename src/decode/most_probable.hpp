/// Selects the most probable tokens from rows of logits.
#pragma once

#include <cstdint>
#include <vector>

#include "xtape/array.hpp"

namespace xtape::decode {

/// Returns the logits. Throws DefinitionError if the result of a step does not consist of floats [rows, tokens,
/// classes].
const ArrayView& checked_logits(const ArrayView& result);

struct ScoredToken {
  std::int32_t token = 0;
  double log_probability = 0;
};

/// Sets choices[i] to the `count` most probable tokens of row rows[i]. `logits` are floats [rows, 1, classes]. The
/// order is by falling probability. If two probabilities are equal, the lower token comes first. Leaves out the tokens
/// `never` and tokens of probability 0, so there may be fewer than `count` choices. Probabilities are the softmax over
/// all classes. Throws Error if the softmax of a row is not defined.
void likeliest(const ArrayView& logits, const std::vector<std::int64_t>& rows, std::int64_t count,
               const std::vector<std::int32_t>& never, int threads, std::vector<std::vector<ScoredToken>>& choices);

}  // namespace xtape::decode
