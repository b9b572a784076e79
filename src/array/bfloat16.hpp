/// Conversions between float32 and bfloat16, which is the upper half of a float32.
#pragma once

#include <bit>
#include <cstdint>

namespace xtape {

/// The bits of the bfloat16 number nearest to x; of two equally near ones, the even one. NaN stays NaN. Without
/// branches, so that loops over it are vectorised.
inline std::uint32_t bfloat16_bits(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t nearest = bits + 0x7FFFU + (bits >> 16 & 1U);
  const bool is_nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
  return (is_nan ? bits | 0x400000U : nearest) >> 16;
}

inline float float_of(std::uint32_t bfloat16) {
  return std::bit_cast<float>(bfloat16 << 16);
}

}  // namespace xtape
