/// The 16-bit floating-point formats bfloat16 and float16.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace xtape {

/// The format of bfloat16: the upper 16 bits of a float32, with its range and 8 bits of precision.
struct BrainFormat {
  static float value_of(std::uint16_t bits);
  static std::uint16_t bits_of(float value);
};
/// The format of float16 (binary16 of IEEE 754): 11 bits of precision, and magnitudes from 2^-24 (2^-14 with full
/// precision) to 65504.
struct IeeeFormat {
  static float value_of(std::uint16_t bits);
  static std::uint16_t bits_of(float value);
};

namespace half {
/// Returns a float that rounds to the same bfloat16 and to the same float16 as `value`. A nearest float would not
/// always do: it may lie half way between two halves, where `value` does not.
template <class T>
float rounded_to_odd(T value);
}  // namespace half

/// A 16-bit element of an array. Conversion from another number rounds once, to nearest, with ties to even. Values that
/// are too large become infinite, and NaN stays NaN. Conversion to float is exact. Arithmetic is that of float.
template <class Format>
struct Half {
  std::uint16_t bits = 0;

  Half() = default;
  explicit Half(float value) : bits(Format::bits_of(value)) {}
  template <class T>
  explicit Half(T value) : Half(half::rounded_to_odd(value)) {}
  operator float() const { return Format::value_of(bits); }  // NOLINT: exact, so it converts by intent
};
using bfloat16 = Half<BrainFormat>;  ///< 8 bits of mantissa. NOLINT(readability-identifier-naming): as in the field
using float16 = Half<IeeeFormat>;    ///< 11 bits of mantissa. NOLINT(readability-identifier-naming)
static_assert(sizeof(bfloat16) == 2 && sizeof(float16) == 2, "arrays hold halves without gaps");

namespace half {
inline std::uint32_t bits_of(float value) {  ///< The bits of a float32.
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline float float_of(std::uint32_t bits) {  ///< The float32 of these bits.
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
constexpr std::uint32_t infinity = 0x7F800000U;  // infinity as a float32

/// Clears the last `count` bits of an integer or of the bits of a number. If one of them was set, sets the bit before
/// them, so that the result stays on the same side of every number with fewer bits.
template <class Bits>
Bits without_last_bits(Bits bits, int count) {
  const Bits next = Bits{1} << count, rest = next - 1;
  return (bits & ~rest) | ((bits & rest) != 0 ? next : 0);
}
/// Keeps 13 significant bits, 2 more than a float16 has. A float holds them exactly, unless both formats round `value`
/// to 0 or infinity.
inline float rounded_double_to_odd(double value) {
  std::uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  bits = without_last_bits(bits, 40);
  std::memcpy(&value, &bits, sizeof bits);
  return static_cast<float>(value);
}
template <class T>
float rounded_to_odd(T value) {
  if constexpr (std::is_integral<T>::value && sizeof(T) == sizeof(std::int64_t)) {
    // A double holds 53 bits. An integer of more bits keeps at least 17.
    return rounded_double_to_odd(static_cast<double>(value / (T{1} << 40) == 0 ? value : without_last_bits(value, 24)));
  } else if constexpr (std::is_arithmetic<T>::value) {
    return rounded_double_to_odd(static_cast<double>(value));
  } else {
    return static_cast<float>(value);  // another half
  }
}
}  // namespace half

// The conversions have no branches, so that the compiler can vectorise loops over them.

inline float BrainFormat::value_of(std::uint16_t bits) {
  return half::float_of(static_cast<std::uint32_t>(bits) << 16);
}

inline std::uint16_t BrainFormat::bits_of(float value) {
  const std::uint32_t wide = half::bits_of(value);
  const std::uint32_t nearest = wide + 0x7FFFU + (wide >> 16 & 1U);
  const bool is_nan = (wide & 0x7FFFFFFFU) > half::infinity;
  return static_cast<std::uint16_t>((is_nan ? wide | 0x400000U : nearest) >> 16);
}

/// After the shift into float position, the exponent of a float16 is too small by 112, and that of an infinity or NaN
/// by 224. A subnormal number gets the smallest normal exponent, which adds an implicit leading 1 (2^-14). The function
/// then subtracts 2^-14. A NaN becomes quiet, as in hardware conversions.
inline float IeeeFormat::value_of(std::uint16_t bits) {
  constexpr std::uint32_t rebias = 112U << 23, most = 0x0F800000U;
  const std::uint32_t moved = (bits & 0x7FFFU) << 13;
  const std::uint32_t normal = moved + rebias + (moved >= most ? rebias : 0U);
  const float subnormal = half::float_of(moved + rebias + (1U << 23)) - 0x1p-14F;
  const std::uint32_t size = moved < 1U << 23 ? half::bits_of(subnormal) : normal | (moved > most ? 0x400000U : 0U);
  return half::float_of((bits & 0x8000U) << 16 | size);
}

/// For a number below 2^-14, the function adds 0.5. The last bit of this sum is 2^-24, which is the spacing of the
/// subnormal numbers of float16. So the addition rounds the number to a multiple of 2^-24. Normal numbers round when
/// they lose 13 bits of their fraction, and can carry into the exponent.
inline std::uint16_t IeeeFormat::bits_of(float value) {
  constexpr std::uint32_t rebias = 112U << 23, least_normal = 113U << 23, too_large = 143U << 23;
  const std::uint32_t wide = half::bits_of(value), size = wide & 0x7FFFFFFFU;
  const std::uint32_t normal = (size - rebias + 0xFFFU + (size >> 13 & 1U)) >> 13;
  const std::uint32_t subnormal = half::bits_of(half::float_of(size) + 0.5F) - half::bits_of(0.5F);
  const std::uint32_t endless = 0x7C00U | (size > half::infinity ? 0x200U | (size >> 13 & 0x3FFU) : 0U);
  const std::uint32_t nearest = size < least_normal ? subnormal : size < too_large ? normal : endless;
  return static_cast<std::uint16_t>((wide >> 16 & 0x8000U) | nearest);
}

}  // namespace xtape
