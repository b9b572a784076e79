// Conversions of float16 against those of NumPy in halves.json: of single elements, and of arrays by `cast`.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "source_root.hpp"
#include "xtape/text.hpp"
#include "xtape/xtape.hpp"

using namespace xtape;

namespace {
const nlohmann::json& halves_fixture() {
  static const auto json = nlohmann::json::parse(read_text(source_root() + "/tests/golden/data/halves.json"));
  return json;
}

std::string half_hash(const Array& array) {
  std::uint64_t value = 0xCBF29CE484222325;
  for (std::size_t i = 0; i < array.bytes(); ++i)
    value = (value ^ static_cast<const unsigned char*>(array.data())[i]) * 0x100000001B3;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

Array every_half() {
  Array halves(Dtype::float16, {1 << 16});
  for (int i = 0; i < 1 << 16; ++i) halves.as<float16>()[i].bits = static_cast<std::uint16_t>(i);
  return halves;
}

Array cast_to(const Array& array, Dtype dtype) {
  Tape tape;
  return evaluate(cast(tape.constant(array), dtype));
}

/// The float32 numbers that halves.py rounds.
Array floats_between() {
  constexpr int count = 0x7C00;
  Array floats(Dtype::float32, {6 * count});
  const Array halves = every_half();
  const auto* numbers = halves.as<float16>();
  float* to = floats.as<float>();
  for (int i = 0; i < count; ++i, to += 3) {
    const float low = numbers[i], high = i + 1 < count ? float(numbers[i + 1]) : 65536.0F, middle = (low + high) / 2;
    to[0] = std::nextafter(middle, 0.0F);
    to[1] = middle;
    to[2] = std::nextafter(middle, std::numeric_limits<float>::infinity());
  }
  std::transform(floats.as<float>(), to, to, [](float number) { return -number; });
  return floats;
}
}  // namespace

TEST_CASE("float16: every number as float32 is that of NumPy, and of `cast`") {
  const Array halves = every_half(), cast_of_them = cast_to(halves, Dtype::float32);
  Array floats(Dtype::float32, halves.shape());
  int wrong = 0;
  for (std::int64_t i = 0; i < halves.count(); ++i) {
    float& number = floats.as<float>()[i];
    number = halves.as<float16>()[i];
    wrong += std::memcmp(&number, cast_of_them.as<float>() + i, 4) != 0;  // the bits of NaN too
    if (std::isnan(number)) number = std::numeric_limits<float>::quiet_NaN();
  }
  CHECK(wrong == 0);
  CHECK(half_hash(floats) == halves_fixture().at("widened"));
}

TEST_CASE("float16: float32 numbers are rounded as NumPy rounds them, and `cast`") {
  const Array floats = floats_between(), cast_of_them = cast_to(floats, Dtype::float16);
  Array halves(Dtype::float16, floats.shape());
  std::transform(floats.as<float>(), floats.as<float>() + floats.count(), halves.as<float16>(),
                 [](float number) { return float16(number); });
  CHECK(half_hash(halves) == halves_fixture().at("rounded"));
  CHECK(std::memcmp(halves.data(), cast_of_them.data(), halves.bytes()) == 0);
  for (const auto& pair : halves_fixture().at("numbers")) {
    const auto bits = pair.at(0).get<std::uint32_t>();
    float number;
    std::memcpy(&number, &bits, sizeof number);
    CAPTURE(number);
    CHECK(float16(number).bits == pair.at(1).get<int>());
  }
}
