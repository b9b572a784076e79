/// Sizes of pieces, and of scratch that is made of several.
#pragma once

#include <cstddef>
#include <cstdint>

namespace xtape {

/// How many pieces of `each` cover `count`.
constexpr std::int64_t ceiling(std::int64_t count, std::int64_t each) {
  return (count + each - 1) / each;
}

/// So many bytes up to the next cache line, where something else may begin.
constexpr std::size_t whole_lines(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

}  // namespace xtape
