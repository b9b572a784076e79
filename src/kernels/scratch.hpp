/// Rounded divisions for pieces of work and scratch memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace xtape {

/// The number of pieces of size `each` that cover `count`.
constexpr std::int64_t ceiling(std::int64_t count, std::int64_t each) {
  return (count + each - 1) / each;
}

/// `bytes` rounded up to a multiple of the cache line, 64 bytes.
constexpr std::size_t whole_lines(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

/// The minimum number of rows of `length` elements for which another thread pays off.
inline std::int64_t rows_a_piece(std::int64_t length) {
  return std::max<std::int64_t>(1, 8192 / std::max<std::int64_t>(1, length));
}

}  // namespace xtape
