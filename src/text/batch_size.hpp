/// How large batches may be.
#pragma once

#include <cstdint>
#include <string>

#include "xtape/text.hpp"

namespace xtape {

/// Throws Error unless a batch of so many rows and columns has 1 to most_batch_tokens tokens.
inline void check_batch_size(std::int64_t rows, std::int64_t columns) {
  if (rows < 1 || columns < 1) throw Error("a batch has at least one row of one token");
  if (rows > most_batch_tokens / columns)
    throw Error("a batch of " + std::to_string(rows) + " rows of " + std::to_string(columns) +
                " tokens is too large: it has at most " + std::to_string(most_batch_tokens) + " tokens");
}

}  // namespace xtape
