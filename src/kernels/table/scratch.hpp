/// Sizes of pieces of work and of scratch memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/arrays/lengths.hpp"

namespace xtape {

/// `bytes` rounded up to a multiple of the cache line, 64 bytes.
constexpr std::size_t whole_lines(std::size_t bytes) {
  return round_up(bytes, 64);
}

/// The minimum number of rows of `length` elements for which another thread pays off.
inline std::int64_t rows_a_piece(std::int64_t length) {
  return std::max<std::int64_t>(1, 8192 / std::max<std::int64_t>(1, length));
}

}  // namespace xtape
