#include "xtape/array.hpp"

#include <doctest/doctest.h>

#include "base/threads/threads.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

TEST_CASE("shapes broadcast as in NumPy") {
  CHECK(broadcast_shapes({{2, 3}, {3}}) == Shape{2, 3});
  CHECK(broadcast_shapes({{2, 1}, {1, 4}, {}}) == Shape{2, 4});
  CHECK(broadcast_shapes({{0, 3}, {1, 3}}) == Shape{0, 3});
  CHECK_THROWS_WITH_AS(broadcast_shapes({{}, {2, 3}, {}, {4}}),
                       "shapes (2, 3) and (4,) do not broadcast: counted from the back, sizes must be equal or 1",
                       ShapeError);
}

TEST_CASE("an array view sees an xtensor array through its strides") {
  xt::xarray<float> rows{{1, 2, 3}, {4, 5, 6}};
  CHECK(Array(rows).to<float>() == rows);
  xt::xarray<double, xt::layout_type::column_major> columns{{1, 2, 3}, {4, 5, 6}};
  const Array copy{ArrayView(columns)};
  CHECK(copy.as<double>()[1] == 2);
  CHECK(copy.shape() == Shape{2, 3});
  CHECK_THROWS_AS(copy.as<float>(), DtypeError);
}

namespace {
/// What ArrayView reads of Eigen's matrices (a column-major 2 × 3), and of their rows.
template <bool row_major, bool vector>
struct LikeEigen {
  enum { IsRowMajor = row_major, IsVectorAtCompileTime = vector };
  const double* numbers;
  std::int64_t many, rows_, cols_, inner, outer;
  const double* data() const { return numbers; }
  std::int64_t size() const { return many; }
  std::int64_t rows() const { return rows_; }
  std::int64_t cols() const { return cols_; }
  std::int64_t innerStride() const { return inner; }
  std::int64_t outerStride() const { return outer; }
};
}  // namespace

TEST_CASE("an array view sees a matrix of Eigen in its order of storage") {
  const double numbers[] = {1, 2, 3, 4, 5, 6};
  const LikeEigen<false, false> columns{numbers, 6, 2, 3, 1, 2};
  const LikeEigen<true, false> rows{numbers, 6, 2, 3, 1, 3};
  const LikeEigen<true, true> row{numbers, 3, 1, 3, 2, 6};  // the first row of `columns`
  const LikeEigen<false, true> column{numbers, 6, 6, 1, 1, 6};
  CHECK(ArrayView(columns).shape() == Shape{2, 3});
  CHECK(ArrayView(columns).to<double>() == xt::xarray<double>{{1, 3, 5}, {2, 4, 6}});
  CHECK(ArrayView(rows).to<double>() == xt::xarray<double>{{1, 2, 3}, {4, 5, 6}});
  CHECK(ArrayView(row).to<double>() == xt::xarray<double>{1, 3, 5});
  CHECK(ArrayView(column, {3, 2}).to<double>() == xt::xarray<double>{{1, 2}, {3, 4}, {5, 6}});
  CHECK_THROWS_AS(ArrayView(row, {3, 1}), Error);  // it has gaps
}

TEST_CASE("a store keeps order and names the nearest name") {
  Store store;
  store.add("weight", Array(Dtype::float32, {2}));
  store.add("bias", Array(Dtype::float32, {1}));
  CHECK(store[1].name == "bias");
  CHECK_THROWS_WITH_AS(store.at("wieght"), "there is no array 'wieght'; did you mean 'weight'?", Error);
  CHECK_THROWS_AS(store.add("bias", Array(Dtype::float32, {1})), Error);
}

TEST_CASE("parallel_for covers every index once, whatever the number of threads") {
  for (int threads : {1, 2, 3})
    for (std::int64_t count : {0, 1, 7, 64, 1000}) {
      std::vector<int> hits(static_cast<std::size_t>(count), 0);
      parallel_for(threads, count, 16, [&](std::int64_t begin, std::int64_t finish) {
        for (std::int64_t i = begin; i < finish; ++i) ++hits[static_cast<std::size_t>(i)];
      });
      for (int hit : hits) CHECK(hit == 1);
    }
}
