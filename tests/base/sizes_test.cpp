// The sizes that an array can have, and checked 64-bit arithmetic.
#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "xtape/array.hpp"

using namespace xtape;

namespace {
constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t two_to(int power) {
  return std::int64_t{1} << power;
}
}  // namespace

TEST_CASE("the bytes of an array are counted up to 2^63 - 1, as NumPy counts them") {
  CHECK(checked_bytes(Dtype::float32, {2, 3}) == 24);
  CHECK(checked_bytes(Dtype::int64, {}) == 8);
  CHECK(checked_bytes(Dtype::boolean, {largest}) == largest);
  CHECK(checked_bytes(Dtype::boolean, {two_to(31), two_to(31)}) == two_to(62));
  CHECK(checked_bytes(Dtype::float32, {two_to(60)}) == two_to(62));
  CHECK_THROWS_AS(checked_bytes(Dtype::float32, {two_to(61)}), ShapeError);
  CHECK_THROWS_AS(checked_bytes(Dtype::float64, {two_to(60)}), ShapeError);
  CHECK_THROWS_AS(checked_bytes(Dtype::boolean, {two_to(32), two_to(32), 1}), ShapeError);
  // An array with a size of 0 has no elements, but the product of its other sizes must still fit.
  CHECK(checked_bytes(Dtype::float32, {0, two_to(60)}) == 0);
  CHECK_THROWS_AS(checked_bytes(Dtype::float32, {two_to(40), 0, two_to(40)}), ShapeError);
  CHECK_THROWS_WITH_AS(checked_bytes(Dtype::float32, {3, -1}), "sizes must not be negative, got (3, -1)", ShapeError);
  CHECK_THROWS_WITH_AS(checked_bytes(Dtype::float32, {0, least}),
                       "sizes must not be negative, got (0, -9223372036854775808)", ShapeError);
  CHECK_THROWS_WITH_AS(checked_bytes(Dtype::float32, {two_to(62)}),
                       "no array can have shape (4611686018427387904,): its elements, 4 bytes each, must take less "
                       "than 2^63 bytes",
                       ShapeError);
}

TEST_CASE("checked sums and products report overflow of 64 bits and leave the number unchanged") {
  std::int64_t number = largest - 1;
  CHECK(checked_add(number, 1));
  CHECK(number == largest);
  CHECK_FALSE(checked_add(number, 1));
  CHECK(number == largest);
  CHECK(checked_multiply(number, -1));
  CHECK(number == -largest);
  CHECK_FALSE(checked_multiply(number, 2));
  CHECK_FALSE(checked_add(number, -2));
  CHECK(number == -largest);
  number = least;
  CHECK_FALSE(checked_multiply(number, -1));
  CHECK(number == least);
}

TEST_CASE("arrays and views of impossible shapes are refused") {
  CHECK_THROWS_AS(Array(Dtype::float32, {two_to(40), two_to(40)}), ShapeError);
  CHECK_THROWS_AS(Array(Dtype::float32, {-1}), ShapeError);
  CHECK_THROWS_AS(Array(Dtype::float32, {two_to(31), two_to(31), 2, 2}), ShapeError);
  const std::vector<double> three{1, 2, 3};
  CHECK_THROWS_AS(ArrayView(three, {two_to(40), two_to(40)}), ShapeError);
  const float zero = 0;
  CHECK_THROWS_AS(ArrayView(&zero, Dtype::float32, {{two_to(40), two_to(40)}, {0, 0}, 0}), ShapeError);
  CHECK_THROWS_WITH_AS(ArrayView(&zero, Dtype::float32, {{1, 1}, {0}, 0}),
                       "a view of shape (1, 1) needs a stride for each axis, got (0,)", ShapeError);
  CHECK_THROWS_WITH_AS(Array(Dtype::boolean, {two_to(60)}),
                       doctest::Contains("out of memory: an array of 1152921504606846976 bytes, and "), Error);
  // A view with strides of 0 may have more elements than memory can hold; it cannot be copied.
  const ArrayView repeated(&zero, Dtype::float32, {{two_to(58)}, {0}, 0});
  CHECK(repeated.shape() == Shape{two_to(58)});
  CHECK_THROWS_AS(Array{repeated}, Error);
}

TEST_CASE("Array::first takes at largest the elements of the array, also if the product of sizes overflows") {
  Array array(Dtype::float32, {4});
  CHECK(array.first({2, 1}).shape() == Shape{2, 1});
  CHECK_THROWS_AS(array.first({5}), ShapeError);
  CHECK_THROWS_AS(array.first({two_to(32), two_to(32)}), ShapeError);  // 2^64, which is 0 in 64 bits
  CHECK_THROWS_AS(array.first({-1, -4}), ShapeError);
}

TEST_CASE("inserting or erasing an axis beyond the last is an error") {
  Shape shape{2, 3};
  CHECK_THROWS_WITH_AS(shape.erase(2), "shape (2, 3) has no axis 2", ShapeError);
  CHECK_THROWS_WITH_AS(shape.insert(3, 1), "shape (2, 3) has no axis 3", ShapeError);
  CHECK_THROWS_AS(Shape().erase(0), ShapeError);
  CHECK(shape == Shape{2, 3});
  shape.erase(0);
  shape.insert(1, 4);
  CHECK(shape == Shape{3, 4});
}

TEST_CASE("the smallest and the largest int64 are out of range as axes") {
  for (const std::int64_t axis : {least, least + 1, -two_to(62), two_to(31), two_to(62), largest})
    for (const std::size_t rank : {0, 1, 10}) CHECK_THROWS_AS(normal_axis(axis, rank), ShapeError);
}

TEST_CASE("a layout broadcasts to the same shapes as in NumPy") {
  const Layout row = Layout::dense({3});
  CHECK(row.broadcast_to({two_to(60), 3}).strides == Shape{0, 1});
  CHECK_THROWS_AS(row.broadcast_to({}), ShapeError);
  CHECK_THROWS_AS(row.broadcast_to({2}), ShapeError);
  CHECK_THROWS_AS(Layout::dense({2, 3}).broadcast_to({3}), ShapeError);
}
