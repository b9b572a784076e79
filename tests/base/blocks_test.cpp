// Blocks of quantised numbers: the values of the package gguf, and the error of rounding.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "base/blocks/block_formats.hpp"
#include "source_root.hpp"
#include "xtape/safetensors.hpp"

using namespace xtape;

namespace {
const Store& golden() {
  static const Store arrays = load_arrays(source_root() + "/tests/golden/data/blocks.safetensors");
  return arrays;
}

/// The bytes of an array of the file, which are int32 in memory.
std::vector<std::byte> bytes_of(const std::string& name) {
  const Array& array = golden().at(name);
  std::vector<std::byte> bytes(static_cast<std::size_t>(count_of(array.shape())));
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(array.as<std::int32_t>()[i]);
  return bytes;
}

/// Numbers as those of a weight: the sums of four uniform numbers, one in sixteen of them larger.
std::vector<float> weights(std::size_t count) {
  std::vector<float> numbers(count);
  std::uint32_t state = 1;
  for (std::size_t i = 0; i < count; ++i) {
    for (int k = 0; k < 4; ++k)
      numbers[i] += static_cast<float>((state = state * 1664525U + 1013904223U) >> 8) * 0x1p-24F - 0.5F;
    if (i % 16 == 3) numbers[i] *= 3;
  }
  return numbers;
}

std::vector<float> read_back(const BlockFormat& format, const std::vector<float>& numbers) {
  const auto blocks = static_cast<std::int64_t>(numbers.size()) / format.elements;
  std::vector<std::byte> bytes(static_cast<std::size_t>(blocks * format.bytes));
  std::vector<float> values(numbers.size());
  format.encode(numbers.data(), bytes.data(), blocks);
  format.decode(bytes.data(), values.data(), blocks);
  return values;
}
}  // namespace

TEST_CASE("values of blocks are those of the package gguf, bit for bit") {
  for (const BlockFormat& format : block_formats()) {
    const std::string name = format.name;
    CAPTURE(name);
    if (name == "F32") continue;
    const std::vector<std::byte> blocks = bytes_of(name + ".blocks");
    const Array& wanted = golden().at(name + ".values");
    REQUIRE(blocks.size() * static_cast<std::size_t>(format.elements) ==
            static_cast<std::size_t>(count_of(wanted.shape()) * format.bytes));
    std::vector<float> values(static_cast<std::size_t>(count_of(wanted.shape())));
    format.decode(blocks.data(), values.data(), static_cast<std::int64_t>(blocks.size()) / format.bytes);
    CHECK(std::memcmp(values.data(), wanted.data(), 4 * values.size()) == 0);
  }
}

TEST_CASE("numbers are rounded to the blocks that the package gguf makes") {
  int compared = 0;
  const Array& numbers = golden().at("numbers");
  for (const BlockFormat& format : block_formats()) {
    CAPTURE(format.name);
    if (golden().find(format.name + std::string(".rounded")) == nullptr) continue;
    const std::vector<std::byte> wanted = bytes_of(format.name + std::string(".rounded"));
    std::vector<std::byte> blocks(wanted.size());
    format.encode(numbers.as<float>(), blocks.data(), static_cast<std::int64_t>(wanted.size()) / format.bytes);
    CHECK(blocks == wanted);
    ++compared;
  }
  CHECK(compared == 7);
}

TEST_CASE("every format that is written has the error of its bits, and keeps its own values") {
  const std::vector<float> numbers = weights(4096);
  double power = 0;
  for (const float x : numbers) power += double(x) * x;
  const std::pair<const char*, double> most[] = {{"Q8_0", 0.0075}, {"Q6_K", 0.024}, {"Q5_K", 0.044}, {"Q5_1", 0.058},
                                                 {"Q5_0", 0.058},  {"Q4_K", 0.088}, {"Q4_1", 0.115}, {"Q4_0", 0.115},
                                                 {"F16", 0.0003},  {"BF16", 0.002}, {"F32", 0}};
  for (const auto& each : most) {
    const auto [name, error] = each;
    CAPTURE(each.first);
    const BlockFormat& format = *find_block_format(name);
    const std::vector<float> values = read_back(format, numbers);
    double squares = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) squares += std::pow(double(values[i]) - numbers[i], 2);
    const double relative = std::sqrt(squares / power);
    CHECK(relative <= error);
    CHECK(relative >= error / 4);
    // What was rounded once changes little when it is rounded again.
    double again = 0;
    const std::vector<float> twice = read_back(format, values);
    for (std::size_t i = 0; i < values.size(); ++i) again += std::pow(double(twice[i]) - values[i], 2);
    CHECK(std::sqrt(again / power) <= error / 2);
  }
}

TEST_CASE("zeros and constant numbers stay what they are") {
  for (const BlockFormat& format : block_formats()) {
    if (format.encode == nullptr) continue;
    CAPTURE(format.name);
    CHECK(read_back(format, std::vector<float>(256, 0.0F)) == std::vector<float>(256, 0.0F));
    for (const float constant : {1.0F, -1.0F})
      for (const float value : read_back(format, std::vector<float>(256, constant)))
        CHECK(std::abs(value - constant) < 0.01F);
    for (const float value : read_back(format, std::vector<float>(256, 1e-40F))) CHECK(std::isfinite(value));
  }
}

TEST_CASE("formats are found by name and number, and their blocks have no gaps") {
  std::set<std::uint32_t> numbers;
  for (const BlockFormat& format : block_formats()) {
    CHECK(find_block_format(format.name) == &format);
    CHECK(find_block_format(format.number) == &format);
    CHECK(numbers.insert(format.number).second);
  }
  CHECK(numbers.size() == 13);
  CHECK(find_block_format("Q4_k") == nullptr);
  CHECK(find_block_format(16U) == nullptr);
}
