/// Hashes of several numbers.
#pragma once

#include <cstdint>

namespace xtape {

/// Adds a number to a hash. The order of the numbers matters.
inline void mix(std::uint64_t& hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15ULL + (hash >> 29);
}

}  // namespace xtape
