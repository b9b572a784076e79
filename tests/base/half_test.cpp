// Conversions of bfloat16 and float16.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "xtape/array.hpp"

using namespace xtape;

namespace {
constexpr float inf = std::numeric_limits<float>::infinity();

std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
template <class H>
H half_of(std::uint32_t bits) {
  H number;
  number.bits = static_cast<std::uint16_t>(bits);
  return number;
}

/// The positive finite numbers of a format in order: its bits up to these.
template <class H>
constexpr std::uint32_t greatest = dtype_of<H>() == Dtype::bfloat16 ? 0x7F7F : 0x7BFF;
}  // namespace

TEST_CASE("a float becomes the nearest bfloat16, of two equally near ones the even one") {
  CHECK(float(bfloat16(1.0f)) == 1.0f);
  CHECK(float(bfloat16(1.0f + 0x1p-8f)) == 1.0f);                // half way: 1.0 is even
  CHECK(float(bfloat16(1.0f + 3 * 0x1p-8f)) == 1.0f + 0x1p-6f);  // half way: the upper one is even
  CHECK(float(bfloat16(1.0f + 0x1.2p-8f)) == 1.0f + 0x1p-7f);
  CHECK(float(bfloat16(std::numeric_limits<float>::max())) == inf);
  CHECK(float(bfloat16(0x1p-133f)) == 0x1p-133f);  // the smallest subnormal
  for (int i = -127; i <= 127; ++i) CHECK(float(bfloat16(i)) == static_cast<float>(i));
}

TEST_CASE("a float becomes the nearest float16, of two equally near ones the even one") {
  CHECK(float16(1.0f).bits == 0x3C00);
  CHECK(float(float16(1.0f + 0x1p-11f)) == 1.0f);                // half way: 1.0 is even
  CHECK(float(float16(1.0f + 3 * 0x1p-11f)) == 1.0f + 0x1p-9f);  // half way: the upper one is even
  CHECK(float(float16(1.0f + 0x1.002p-11f)) == 1.0f + 0x1p-10f);
  CHECK(float(float16(65519.996f)) == 65504);
  CHECK(float(float16(65520.0f)) == inf);
  CHECK(float(float16(-1e30f)) == -inf);
  CHECK(float(float16(0x1p-24f)) == 0x1p-24f);  // the smallest subnormal
  CHECK(float(float16(0x1p-25f)) == 0);         // half way: 0 is even
  CHECK(float(float16(0x1.000002p-25f)) == 0x1p-24f);
  CHECK(float(float16(3 * 0x1p-25f)) == 0x1p-23f);
  CHECK(float(float16(0x1.FFCp-15f)) == 0x1p-14f);  // half way from the largest subnormal, which is odd
  for (int i = -2048; i <= 2048; ++i) CHECK(float(float16(i)) == static_cast<float>(i));
}

TEST_CASE_TEMPLATE("halves: every number stays itself, and between two of them a float goes to the nearer one", H,
                   bfloat16, float16) {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 1 << 16; ++bits) {
    const auto number = half_of<H>(bits);
    const H back(static_cast<float>(number));
    wrong += std::isnan(float(number)) ? !std::isnan(float(back)) : back.bits != number.bits;
  }
  CHECK(wrong == 0);
  for (std::uint32_t bits = 0; bits < greatest<H>; ++bits) {
    const float low = half_of<H>(bits), high = half_of<H>(bits + 1), middle = low + (high - low) / 2;
    for (const float sign : {1.0f, -1.0f}) {
      const auto goes_to = [&](float value, std::uint32_t to) {
        return H(sign * value).bits == (sign < 0 ? to | 0x8000U : to);
      };
      wrong += !goes_to(middle, bits + bits % 2);
      wrong += !goes_to(std::nextafter(middle, 0.0f), bits);
      wrong += !goes_to(std::nextafter(middle, inf), bits + 1);
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("halves: a double goes to the nearest one, rounded once", H, bfloat16, float16) {
  CHECK(float(float16(1 + 0x1p-11 + 0x1p-40)) == 1 + 0x1p-10f);  // half way between floats that are half way
  CHECK(float(bfloat16(1 + 0x1p-8 + 0x1p-40)) == 1 + 0x1p-7f);
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < greatest<H>; ++bits) {
    const double low = half_of<H>(bits), high = half_of<H>(bits + 1), middle = low + (high - low) / 2;
    for (const double sign : {1.0, -1.0}) {
      const auto goes_to = [&](double value, std::uint32_t to) {
        return H(sign * value).bits == (sign < 0 ? to | 0x8000U : to);
      };
      wrong += !goes_to(middle, bits + bits % 2);
      for (const double part : {0x1p-52, 0x1p-40, 0x1p-26, 0x1p-13}) {
        wrong += !goes_to(middle - part * middle, bits);
        wrong += !goes_to(middle + part * middle, bits + 1);
      }
    }
  }
  CHECK(wrong == 0);
  CHECK(float(H(1e300)) == inf);
  CHECK(float(H(-1e-300)) == 0);
  CHECK(std::signbit(float(H(-1e-300))));
  const double most = half_of<H>(greatest<H>), beyond = most + (most - half_of<H>(greatest<H> - 1)) / 2;
  CHECK(float(H(beyond)) == inf);
  CHECK(float(H(std::nextafter(beyond, 0.0))) == most);
}

TEST_CASE("halves: an integer goes to the nearest one, rounded once") {
  CHECK(float(bfloat16(std::int64_t{16842753})) == 16908288);  // 2^24 + 2^16 + 1
  CHECK(float(bfloat16(16842753)) == 16908288);
  int wrong = 0;
  for (int exponent = 9; exponent < 63; ++exponent)
    for (std::int64_t odd = 257; odd < 512; odd += 2) {  // half way between two bfloat16 numbers
      const std::int64_t middle = odd << (exponent - 8);
      const auto low = static_cast<float>(odd - 1), high = static_cast<float>(odd + 1);
      const float unit = std::ldexp(1.0f, exponent - 8);
      for (const std::int64_t sign : {1, -1}) {
        const auto goes_to = [&](std::int64_t value, float to) {
          return float(bfloat16(sign * value)) == static_cast<float>(sign) * to * unit;
        };
        wrong += !goes_to(middle, (odd + 1) / 2 % 2 == 0 ? high : low);
        wrong += !goes_to(middle - 1, low);
        wrong += !goes_to(middle + 1, high);
      }
    }
  CHECK(wrong == 0);
  for (std::int64_t k = 2049; k < 65504; k += 2) {  // half way, or nearest to one side, between float16 numbers
    const int spacing = 1 << (std::ilogb(static_cast<double>(k)) - 10);
    const auto nearest = static_cast<std::int64_t>(std::nearbyint(static_cast<double>(k) / spacing)) * spacing;
    wrong += float(float16(k)) != static_cast<float>(nearest);
  }
  CHECK(wrong == 0);
  CHECK(float(float16(std::int64_t{65519})) == 65504);
  CHECK(float(float16(std::int64_t{65520})) == inf);
  CHECK(float(float16(std::numeric_limits<std::int64_t>::min())) == -inf);
  CHECK(float(bfloat16(std::numeric_limits<std::int64_t>::max())) == 0x1p63f);
  CHECK(float(bfloat16(std::numeric_limits<std::int64_t>::min())) == -0x1p63f);
  CHECK(float(bfloat16(std::numeric_limits<std::uint64_t>::max())) == 0x1p64f);
}

TEST_CASE_TEMPLATE("halves: zeros, infinities, NaN and other numbers", H, bfloat16, float16) {
  CHECK(H(-0.0f).bits == 0x8000);
  CHECK(std::signbit(float(H(-0.0f))));
  CHECK(float(H(inf)) == inf);
  CHECK(float(H(-inf)) == -inf);
  for (const std::uint32_t nan : {0x7FC00000U, 0xFFC00000U, 0x7F800001U, 0x7FFFFFFFU, 0xFF812345U}) {
    float value;
    std::memcpy(&value, &nan, sizeof value);
    CAPTURE(nan);
    CHECK(std::isnan(float(H(value))));
    CHECK(std::signbit(float(H(value))) == std::signbit(value));
  }
  CHECK(float(H(2.5)) == 2.5f);
  CHECK(float(H(std::int64_t{-3})) == -3);
  CHECK(float(H(true)) == 1);
  CHECK(bits_of(H()) == 0);
}

TEST_CASE("names and sizes of the dtypes") {
  const std::pair<Dtype, std::size_t> dtypes[] = {{Dtype::float32, 4}, {Dtype::float64, 8}, {Dtype::bfloat16, 2},
                                                  {Dtype::float16, 2}, {Dtype::int32, 4},   {Dtype::int64, 8},
                                                  {Dtype::int8, 1},    {Dtype::boolean, 1}};
  for (const auto& [dtype, bytes] : dtypes) {
    CHECK(dtype_named(name_of(dtype)) == dtype);
    CHECK(size_of(dtype) == bytes);
  }
  CHECK(std::string(name_of(Dtype::boolean)) == "bool");
  CHECK_THROWS_WITH_AS(dtype_named("half"),
                       "unknown dtype 'half': use float32, float64, bfloat16, float16, int32, int64, int8 or bool",
                       DtypeError);
  CHECK(dtype_of<bfloat16>() == Dtype::bfloat16);
  CHECK(dtype_of<float16>() == Dtype::float16);
  CHECK(dtype_of<std::int8_t>() == Dtype::int8);
}
