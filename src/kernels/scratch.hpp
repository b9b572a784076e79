/// Rounded divisions for pieces of work and scratch memory.
#pragma once

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

}  // namespace xtape
