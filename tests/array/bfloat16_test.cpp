// Conversions of bfloat16.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "xtape/array.hpp"

using namespace xtape;

TEST_CASE("a float becomes the nearest bfloat16, of two equally near ones the even one") {
  CHECK(float(bfloat16(1.0f)) == 1.0f);
  CHECK(float(bfloat16(1.0f + 0x1p-8f)) == 1.0f);                // half way: 1.0 is even
  CHECK(float(bfloat16(1.0f + 3 * 0x1p-8f)) == 1.0f + 0x1p-6f);  // half way: the upper one is even
  CHECK(float(bfloat16(1.0f + 0x1.2p-8f)) == 1.0f + 0x1p-7f);
  CHECK(float(bfloat16(-0.0f)) == 0);
  CHECK(std::signbit(float(bfloat16(-0.0f))));
  CHECK(float(bfloat16(std::numeric_limits<float>::max())) == std::numeric_limits<float>::infinity());
  CHECK(float(bfloat16(-std::numeric_limits<float>::infinity())) == -std::numeric_limits<float>::infinity());
  CHECK(std::isnan(float(bfloat16(std::numeric_limits<float>::quiet_NaN()))));
  CHECK(float(bfloat16(0x1p-133f)) == 0x1p-133f);  // the smallest subnormal
  for (int i = -127; i <= 127; ++i) CHECK(float(bfloat16(i)) == static_cast<float>(i));
}

TEST_CASE("every bfloat16 stays itself through float") {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 1 << 16; ++bits) {
    bfloat16 number;
    number.bits = static_cast<std::uint16_t>(bits);
    const bfloat16 back(static_cast<float>(number));
    wrong += std::isnan(float(number)) ? !std::isnan(float(back)) : back.bits != number.bits;
  }
  CHECK(wrong == 0);
}

TEST_CASE("names and sizes of the dtypes") {
  const std::pair<Dtype, std::size_t> dtypes[] = {{Dtype::float32, 4}, {Dtype::float64, 8}, {Dtype::bfloat16, 2},
                                                  {Dtype::int32, 4},   {Dtype::int64, 8},   {Dtype::int8, 1},
                                                  {Dtype::boolean, 1}};
  for (const auto& [dtype, bytes] : dtypes) {
    CHECK(dtype_named(name_of(dtype)) == dtype);
    CHECK(size_of(dtype) == bytes);
  }
  CHECK_THROWS_WITH_AS(dtype_named("float16"),
                       "unknown dtype 'float16': use float32, float64, bfloat16, int32, int64, int8 or bool",
                       DtypeError);
  CHECK(dtype_of<bfloat16>() == Dtype::bfloat16);
  CHECK(dtype_of<std::int8_t>() == Dtype::int8);
}
