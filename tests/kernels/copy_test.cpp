#include "kernels/elements/copy.hpp"

#include <doctest/doctest.h>

#include "random_layouts.hpp"

using namespace xtape;

namespace {
/// Copies between random layouts of `shape`; checks every element, and that no other memory was written.
template <class T>
void check_copy(Dtype dtype, const Shape& shape, std::mt19937& random, int threads) {
  Scattered<T> from = scattered<T>(shape, random, {true, true, true, true});
  Scattered<T> to = scattered<T>(shape, random);
  Scattered<T> expected = to;
  for_each_index(shape, [&](const Shape& index) { expected.at(index) = from.at(index); });
  make_copy(dtype, from.layout, to.layout, threads)(from.memory.data(), to.memory.data());
  CAPTURE(shape);
  CAPTURE(from.layout.strides);
  CAPTURE(to.layout.strides);
  CHECK(to.memory == expected.memory);
}
}  // namespace

TEST_CASE("copies between any two layouts of small arrays") {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    Shape shape;
    for (std::size_t rank = random() % 6; rank > 0; --rank) shape.push_back(random() % 10 == 0 ? 0 : 1 + random() % 6);
    check_copy<float>(Dtype::float32, shape, random, 2);
    check_copy<double>(Dtype::float64, shape, random, 1);
    check_copy<signed char>(Dtype::boolean, shape, random, 1);
  }
}

TEST_CASE("copies between any two layouts of arrays large enough for tiles and threads") {
  std::mt19937 random(2);
  for (int round = 0; round < 60; ++round) {
    Shape shape;
    for (std::size_t rank = 1 + random() % 4; rank > 0; --rank) shape.push_back(1 + random() % 40);
    check_copy<std::int32_t>(Dtype::int32, shape, random, 2);
    check_copy<double>(Dtype::float64, shape, random, 3);
  }
  check_copy<float>(Dtype::float32, {300000}, random, 2);
  check_copy<float>(Dtype::float32, {517, 333}, random, 2);
}

TEST_CASE("a transposing copy of a matrix whose sizes are not multiples of a tile") {
  for (const auto& [rows, columns] : {std::pair<std::int64_t, std::int64_t>{37, 83}, {16, 16}, {3, 100}, {1000, 17}}) {
    std::vector<float> from(static_cast<std::size_t>(rows * columns)), to(from.size());
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i);
    make_copy(Dtype::float32, {{columns, rows}, {1, columns}, 0}, Layout::dense({columns, rows}), 2)(from.data(),
                                                                                                     to.data());
    for (std::int64_t i = 0; i < columns; ++i)
      for (std::int64_t j = 0; j < rows; ++j)
        REQUIRE(to[static_cast<std::size_t>(i * rows + j)] == static_cast<float>(j * columns + i));
  }
}

TEST_CASE("a fill writes one value to every element of a layout and to no other memory") {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    Shape shape;
    for (std::size_t rank = random() % 4; rank > 0; --rank) shape.push_back(random() % 7);
    Scattered<double> to = scattered<double>(shape, random);
    Scattered<double> expected = to;
    for_each_index(shape, [&](const Shape& index) { expected.at(index) = 2.5; });
    const double value = 2.5;
    make_fill(Dtype::float64, to.layout, &value, 2)(to.memory.data());
    CHECK(to.memory == expected.memory);
  }
}
