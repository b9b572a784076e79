/// Limits of the size of a batch, and the identity of a sequence of batches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/files/checksum.hpp"
#include "xtape/text.hpp"

namespace xtape {

/// Throws Error if `rows` or `columns` is below 1, or if rows × columns is above most_batch_tokens.
inline void check_batch_size(std::int64_t rows, std::int64_t columns) {
  if (rows < 1 || columns < 1) throw Error("a batch must have at least one row of one token");
  if (rows > most_batch_tokens / columns)
    throw Error("a batch of " + std::to_string(rows) + " rows of " + std::to_string(columns) +
                " tokens is too large: the limit is " + std::to_string(most_batch_tokens) + " tokens");
}

/// Throws Error if validation batch `index` is not one of `count` batches.
inline void check_validation_index(std::int64_t index, std::int64_t count) {
  if (index < 0 || index >= count)
    throw Error("there is no validation batch " + std::to_string(index) + ", only " + std::to_string(count));
}

/// Returns a value of Batches::order for batches that the numbers determine.
inline std::uint64_t order_by(const std::vector<std::uint64_t>& numbers) {
  return checksum_of_pieces(numbers) >> 2 | 1;
}

}  // namespace xtape
