// Views of ranges, and ways to read elements.
#include <doctest/doctest.h>

#include <array>
#include <span>
#include <vector>

#include "xtape/array.hpp"
#include "xtape/literal.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

TEST_CASE("a range in one piece is an array of one axis, or of the given shape") {
  const std::vector<double> list{1, 2, 3, 4, 5, 6};
  const ArrayView flat = list;
  CHECK(flat.dtype() == Dtype::float64);
  CHECK(flat.shape() == Shape{6});
  CHECK(flat.data() == list.data());
  const ArrayView matrix(list, {2, 3});
  CHECK(matrix.shape() == Shape{2, 3});
  CHECK(matrix(1, 0) == 4);
  std::array<std::int64_t, 2> pair{7, 8};
  CHECK(ArrayView(pair).dtype() == Dtype::int64);
  CHECK(ArrayView(std::span<const double>(list).subspan(2, 2))(1) == 4);
  CHECK(ArrayView(std::vector<float>()).shape() == Shape{0});
  CHECK(ArrayView(std::vector<std::int8_t>{1, -2}, {1, 2, 1})(0, 1, 0) == -2);
  const ArrayView kept = ArrayView(std::vector<float>{1, 2, 3, 4}, {2, 2});  // the temporary moves in
  CHECK(Array(kept)(1, 1) == 4);
  CHECK_THROWS_WITH_AS(ArrayView(list, {2, 2}), "an array of shape (2, 2) has 4 elements, the given range 6",
                       ShapeError);
  CHECK_THROWS_AS(ArrayView(list, {-1, 6}), ShapeError);
  CHECK_THROWS_AS(ArrayView(list, {std::int64_t{1} << 40, std::int64_t{1} << 40}), ShapeError);
  static_assert(!std::is_convertible<std::vector<bool>, ArrayView>::value);
  static_assert(!std::is_convertible<std::vector<unsigned>, ArrayView>::value);
  static_assert(!std::is_convertible<std::string, ArrayView>::value);
  static_assert(!std::is_convertible<std::vector<std::vector<float>>, ArrayView>::value);
}

TEST_CASE("elements of any dtype are read by their indices, as doubles") {
  for (const Dtype dtype : {Dtype::float32, Dtype::float64, Dtype::bfloat16, Dtype::float16, Dtype::int32, Dtype::int64,
                            Dtype::int8, Dtype::boolean}) {
    const Array array = array_of({0, 1, 1, 0, 0, 1}, dtype, {2, 3});
    CHECK(array(0, 1) == 1);
    CHECK(array(1, 0) == 0);
    CHECK(array(-1, -1) == 1);
    CHECK(ArrayView(array).element({1, 2}) == 1);
  }
  const Array number = array_of({2.5}, Dtype::float32, {});
  CHECK(number() == 2.5);
  CHECK_THROWS_WITH_AS(number(0), "an array of shape () has no element (0,)", ShapeError);
  const xt::xarray<float> values{{1, 2, 3}, {4, 5, 6}};
  const ArrayView columns(values.data(), Dtype::float32, {{3, 2}, {1, 3}, 0});  // transposed
  CHECK(columns(2, 1) == 6);
  CHECK_THROWS_AS(columns(3, 0), ShapeError);
  CHECK_THROWS_AS(columns(0, -3), ShapeError);
  CHECK_THROWS_AS(columns(0), ShapeError);
  CHECK_THROWS_AS(Array()(0), Error);
  CHECK_THROWS_AS(Array(Dtype::float32, {0})(0), ShapeError);
}

TEST_CASE("tensor and span see the elements without a copy") {
  Array array = array_of({1, 2, 3, 4, 5, 6}, Dtype::float32, {2, 3});
  auto w = array.tensor<float>();
  CHECK(w.data() == array.as<float>());
  CHECK(w(1, 2) == 6);
  w -= 0.5 * w;
  CHECK(array(1, 2) == 3);
  array.tensor<float>() *= 2;
  CHECK(array(1, 2) == 6);
  const Array& same = array;
  CHECK(same.tensor<float>()(0, 1) == 2);
  CHECK(xt::sum(same.tensor<float>())() == 21);
  CHECK(ArrayView(array).tensor<float>().shape()[1] == 3);
  array.span<float>()[5] = -1;
  CHECK(array(1, 2) == -1);
  CHECK(same.span<float>().size() == 6);
  CHECK(array_of({7}, Dtype::int64, {}).tensor<std::int64_t>()() == 7);
  CHECK(Array(Dtype::float64, {2, 0}).tensor<double>().size() == 0);
  CHECK_THROWS_AS(array.tensor<double>(), DtypeError);
  CHECK_THROWS_AS(array.span<std::int32_t>(), DtypeError);
  CHECK_THROWS_AS(Array().tensor<float>(), Error);
  const ArrayView columns(array.data(), Dtype::float32, {{3, 2}, {1, 3}, 0});
  CHECK_THROWS_WITH_AS(columns.tensor<float>(),
                       "a view of shape (3, 2) with the strides (1, 3) has gaps: copy it by to() or Array()", Error);
  CHECK_THROWS_AS(columns.span<float>(), Error);
}

TEST_CASE("lists of literals become arrays whose dtype holds them") {
  CHECK(array_of({1, 2.5}, Dtype::float64, {2})(1) == 2.5);
  CHECK_THROWS_AS(array_of({1, 2.5}, Dtype::int32, {2}), DtypeError);
  CHECK_THROWS_AS(array_of({300}, Dtype::int8, {1}), DtypeError);
  CHECK_THROWS_WITH_AS(array_of({1, 2, 3}, Dtype::float32, {2}), "an array of shape (2,) has 2 elements, the list 3",
                       ShapeError);
}
