#include "stored_types.hpp"

#include <cstring>
#include <map>

namespace xtape {

namespace {
template <class From, class To>
void widen(const std::byte* from, void* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from + i * static_cast<std::int64_t>(sizeof(From)), sizeof(From));
    static_cast<To*>(to)[i] = static_cast<To>(value);
  }
}

float float_of_bits(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// Has no branches, so that loops over it are vectorised. In the position of a float's exponent, the exponent of a half
/// is too small by 112; that of an infinity or a NaN by 224. A subnormal half gets the smallest normal exponent, which
/// adds an implicit leading 1 (2^-14); that is then subtracted.
float from_half(std::uint16_t half) {
  constexpr std::uint32_t rebias = 112U << 23;
  const std::uint32_t moved = (half & 0x7FFFU) << 13;
  const std::uint32_t exponent = moved & 0x0F800000U;
  const std::uint32_t normal = moved + rebias + (exponent == 0x0F800000U ? rebias : 0U);
  const float subnormal = float_of_bits(moved + rebias + (1U << 23)) - 0x1p-14F;
  std::uint32_t subnormal_bits;
  std::memcpy(&subnormal_bits, &subnormal, sizeof subnormal_bits);
  return float_of_bits((half & 0x8000U) << 16 | (exponent == 0 ? subnormal_bits : normal));
}

void widen_half(const std::byte* from, void* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint16_t bits;
    std::memcpy(&bits, from + 2 * i, 2);
    static_cast<float*>(to)[i] = from_half(bits);
  }
}

void copy_flags(const std::byte* from, void* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) static_cast<bool*>(to)[i] = from[i] != std::byte{0};
}

}  // namespace

const Stored* stored_type(const std::string& name) {
  static const std::map<std::string, Stored> types = {
      {"F32", {4, Dtype::float32, nullptr}},
      {"F64", {8, Dtype::float64, nullptr}},
      {"F16", {2, Dtype::float32, widen_half}},
      {"BF16", {2, Dtype::bfloat16, nullptr}},
      {"I64", {8, Dtype::int64, nullptr}},
      {"I32", {4, Dtype::int32, nullptr}},
      {"I16", {2, Dtype::int32, widen<std::int16_t, std::int32_t>}},
      {"I8", {1, Dtype::int8, nullptr}},
      {"U32", {4, Dtype::int64, widen<std::uint32_t, std::int64_t>}},
      {"U16", {2, Dtype::int32, widen<std::uint16_t, std::int32_t>}},
      {"U8", {1, Dtype::int32, widen<std::uint8_t, std::int32_t>}},
      {"BOOL", {1, Dtype::boolean, copy_flags}},
  };
  const auto found = types.find(name);
  return found == types.end() ? nullptr : &found->second;
}

Conversion widening(Dtype from, Dtype to) {
  if (from != Dtype::bfloat16) return nullptr;
  return to == Dtype::float32 ? widen<bfloat16, float> : to == Dtype::float64 ? widen<bfloat16, double> : nullptr;
}

const char* stored_name(Dtype dtype) {
  switch (dtype) {
    case Dtype::float32:
      return "F32";
    case Dtype::float64:
      return "F64";
    case Dtype::bfloat16:
      return "BF16";
    case Dtype::int8:
      return "I8";
    case Dtype::int32:
      return "I32";
    case Dtype::int64:
      return "I64";
    default:
      return "BOOL";
  }
}

}  // namespace xtape
