/// bfloat16 numbers: the upper half of a float32, with its range and 8 bits of precision.
#pragma once

#include <cstdint>
#include <cstring>

namespace xtape {

/// An element of bfloat16 arrays. A conversion from float rounds to the nearest number, of two equally near ones to the
/// even one; NaN stays NaN. A conversion to float is exact. Arithmetic is that of float.
struct bfloat16 {  // NOLINT(readability-identifier-naming): the name of the type in the field
  std::uint16_t bits = 0;

  bfloat16() = default;
  explicit bfloat16(float value) : bits(bits_of(value)) {}
  template <class T>
  explicit bfloat16(T value) : bfloat16(static_cast<float>(value)) {}
  operator float() const {  // NOLINT: exact, so it converts by intent
    const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &wide, sizeof value);
    return value;
  }

 private:
  // Without branches, so that loops over it are vectorised.
  static std::uint16_t bits_of(float value) {
    std::uint32_t wide;
    std::memcpy(&wide, &value, sizeof wide);
    const std::uint32_t nearest = wide + 0x7FFFU + (wide >> 16 & 1U);
    const bool is_nan = (wide & 0x7FFFFFFFU) > 0x7F800000U;
    return static_cast<std::uint16_t>((is_nan ? wide | 0x400000U : nearest) >> 16);
  }
};
static_assert(sizeof(bfloat16) == 2, "arrays hold bfloat16 numbers without gaps");

}  // namespace xtape
