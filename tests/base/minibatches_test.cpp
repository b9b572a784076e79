#include "xtape/minibatches.hpp"

#include <doctest/doctest.h>

#include <set>

#include "xtape/xtensor.hpp"

namespace minibatches {

using namespace xtape;

namespace {
/// Rows 0 … count - 1: [count, 2], with elements 10 * row and 10 * row + 1.
xt::xarray<float> numbered(std::size_t count) {
  xt::xarray<float> rows = xt::zeros<float>({count, std::size_t{2}});
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t j = 0; j < 2; ++j) rows(i, j) = static_cast<float>(10 * i + j);
  return rows;
}

/// The rows of an epoch in their order; checks that both arrays have the same ones.
template <class Data>
std::vector<int> rows_of(Data&& data, std::vector<std::int64_t>* sizes = nullptr) {
  std::vector<int> rows;
  for (auto [x, y] : data) {
    if (sizes != nullptr) sizes->push_back(x.shape()[0]);
    CHECK(x.shape()[0] == y.shape()[0]);
    for (std::int64_t i = 0; i < x.shape()[0]; ++i) {
      CHECK(x(i, 0) == 10 * y(i));
      CHECK(x(i, 1) == 10 * y(i) + 1);
      rows.push_back(static_cast<int>(y(i)));
    }
  }
  return rows;
}
}  // namespace

TEST_CASE("mini-batches have every row once an epoch, in an order of seed and epoch, the last one short") {
  const xt::xarray<float> x = numbered(10);
  std::vector<std::int64_t> y(10);
  for (std::size_t i = 0; i < 10; ++i) y[i] = static_cast<std::int64_t>(i);
  auto data = batches(4, 5, x, y);
  std::vector<std::int64_t> sizes;
  const std::vector<int> first = rows_of(data, &sizes), second = rows_of(data);
  CHECK(sizes == std::vector<std::int64_t>{4, 4, 2});
  CHECK(std::set<int>(first.begin(), first.end()).size() == 10);
  CHECK(std::set<int>(second.begin(), second.end()).size() == 10);
  CHECK(first != second);
  CHECK(data.epoch() == 2);
  data.set_epoch(0);
  CHECK(rows_of(data) == first);
  CHECK(rows_of(batches(3, 5, x, y)) == first);
  CHECK(rows_of(batches(4, 6, x, y)) != first);
  BatchOptions options;
  options.size = 4;
  options.seed = 5;
  options.drop_last = true;
  sizes.clear();
  CHECK(rows_of(batches(options, x, y), &sizes) == std::vector<int>(first.begin(), first.begin() + 8));
  CHECK(sizes == std::vector<std::int64_t>{4, 4});
  options.shuffle = false;
  CHECK(rows_of(batches(options, x, y)) == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("mini-batches of columns, of temporaries and of rows without elements") {
  const xt::xarray<float, xt::layout_type::column_major> x = numbered(5);
  for (auto [rows, none] : batches(5, 1, x, Array(Dtype::float32, {5, 0}))) {
    CHECK(none.shape() == Shape{5, 0});
    double sum = 0;
    for (std::int64_t i = 0; i < 5; ++i) {
      CHECK(rows(i, 1) == rows(i, 0) + 1);
      sum += rows(i, 0);
    }
    CHECK(sum == 100);
  }
  int count = 0;
  for (auto [one] : batches(1, 1, std::vector<double>{3, 4})) count += static_cast<int>(one(0));
  CHECK(count == 7);
}

TEST_CASE("split_rows draws the rows of both parts") {
  const xt::xarray<float> x = numbered(10);
  std::vector<std::int64_t> y(10);
  for (std::size_t i = 0; i < 10; ++i) y[i] = static_cast<std::int64_t>(i);
  const auto [a, b, c, d] = split_rows(0.75, 3, x, y);
  CHECK(a.shape() == Shape{8, 2});
  CHECK(b.shape() == Shape{2, 2});
  CHECK(c.shape() == Shape{8});
  CHECK(d.dtype() == Dtype::int64);
  std::set<int> rows;
  for (const auto& [part, number] : {std::pair(&a, &c), {&b, &d}})
    for (std::int64_t i = 0; i < part->shape()[0]; ++i) {
      CHECK((*part)(i, 0) == 10 * (*number)(i));
      rows.insert(static_cast<int>((*number)(i)));
    }
  CHECK(rows.size() == 10);
  CHECK_THROWS_WITH_AS(split_rows(1, 3, x), doctest::Contains("both parts must have rows"), Error);
  CHECK_THROWS_AS(split_rows(std::nan(""), 3, x), Error);
}

TEST_CASE("mini-batches: errors") {
  const xt::xarray<float> x = numbered(3);
  CHECK_THROWS_WITH_AS(batches(2, 1, x, std::vector<float>{1, 2}),
                       "batches: array 2 has 2 rows, its shape being (2,), and array 1 has 3", ShapeError);
  CHECK_THROWS_WITH_AS(batches(0, 1, x), "batches: a batch has at least one row, not 0", Error);
  CHECK_THROWS_WITH_AS(batches(2, 1, Array(Dtype::float32, {})), doctest::Contains("no axis of rows"), ShapeError);
  CHECK_THROWS_WITH_AS(batches(2, 1, ArrayView()), doctest::Contains("it is empty"), Error);
  CHECK_THROWS_WITH_AS(batches(2, 1, Array(Dtype::float32, {0, 2})), "batches: 0 rows are not one batch of 2", Error);
  BatchOptions options;
  options.size = 4;
  options.drop_last = true;
  CHECK_THROWS_WITH_AS(batches(options, x), "batches: 3 rows are not one batch of 4", Error);
  RowReader reader({x}, {});
  CHECK_THROWS_WITH_AS(reader.read(1), "batches: there is no batch 1, only 1", Error);
}

}  // namespace minibatches
