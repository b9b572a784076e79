/// Counter-based random numbers: Philox4x32-10 (Salmon et al., 2011, Parallel random numbers: as easy as 1, 2, 3), with
/// the constants of Random123.
///
/// Element i of a draw is word i % 4 of the block with counter (i / 4, step). The seed and the site form the key. Any
/// range of a draw can therefore be computed separately, and the numbers do not depend on threads, tiles or the shape
/// of a batch.
#pragma once

#include <cstdint>

#include "kernels/random/draws.hpp"

namespace xtape {

namespace philox {
constexpr std::int64_t words = 128;  ///< The number of words that one call of `fill` writes.

/// Writes the words of elements [first, first + words) to `out`; `first` is a multiple of 4.
void fill(const RandomStream& stream, std::int64_t first, std::uint32_t* out);
}  // namespace philox

/// Calls use(words, i, n) with the words of elements [first + i, first + i + n), for consecutive pieces of `count`
/// elements. `first` is a multiple of 4.
template <class Use>
void for_random_words(const RandomStream& stream, std::int64_t first, std::int64_t count, const Use& use) {
  alignas(64) std::uint32_t buffer[philox::words];
  for (std::int64_t i = 0; i < count; i += philox::words) {
    philox::fill(stream, first + i, buffer);
    use(static_cast<const std::uint32_t*>(buffer), i, count - i < philox::words ? count - i : philox::words);
  }
}

/// Uniform over [0, 1), from the upper 24 bits of a word.
inline float unit_float(std::uint32_t word) {
  return static_cast<float>(static_cast<std::int32_t>(word >> 8)) * 0x1p-24f;
}

/// The threshold t such that `word >> 8` is less than t with probability p (rounded up to a multiple of 2^-24).
inline std::int32_t threshold_of(double p) {
  const double scaled = p * 0x1p24;
  const auto whole = static_cast<std::int32_t>(scaled);
  return whole < scaled ? whole + 1 : whole;
}

}  // namespace xtape
