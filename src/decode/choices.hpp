/// The likeliest classes of rows of logits.
#pragma once

#include <cstdint>
#include <vector>

#include "xtape/array.hpp"

namespace xtape::decode {

/// Rows of logits, of a float dtype, `stride` elements apart.
struct LogitRows {
  const void* first = nullptr;
  Dtype dtype = Dtype::float32;
  std::int64_t stride = 0;
  std::int64_t classes = 0;
};

struct Choice {
  std::int32_t token = 0;
  double log_probability = 0;
};

/// For each of `rows`: its `count` likeliest tokens, the likeliest first (of equals, the lower token), without those
/// `never`; fewer where there are not so many. Probabilities are those of the softmax over all classes. `choices` has
/// one list a row. Throws Error where a row's softmax is not defined.
void likeliest(const LogitRows& logits, const std::vector<std::int64_t>& rows, std::int64_t count,
               const std::vector<std::int32_t>& never, int threads, std::vector<std::vector<Choice>>& choices);

}  // namespace xtape::decode
