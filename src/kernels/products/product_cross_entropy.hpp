/// The cross-entropy of logits that are a matrix product, together with its gradients. The array of all logits never
/// exists. The logits are computed for some rows at a time.
#pragma once

#include <algorithm>
#include <cstdint>

namespace xtape {

/// The number of rows whose logits are computed at a time. For fewer rows, reading the weight would take longer than
/// multiplying by it.
inline std::int64_t rows_at_once(std::int64_t classes) {
  constexpr std::int64_t least_rows = 512;
  constexpr std::int64_t logits_at_once = 4 << 20;  // the number of logits of a block, for short rows
  constexpr std::int64_t row_step = 256;            // the sum for the weight's gradient takes this many rows at a time
  return std::max(least_rows, logits_at_once / std::max<std::int64_t>(1, classes) / row_step * row_step);
}

}  // namespace xtape
