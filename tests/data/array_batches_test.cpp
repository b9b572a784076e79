#include "xtape/array_batches.hpp"

#include <doctest/doctest.h>

#include <set>

#include "temporary_file.hpp"
#include "xtape/safetensors.hpp"
#include "xtape/xtensor.hpp"

namespace array_batches {

using namespace xtape;

namespace {
/// `count` rows from `first` on: "x" [count, 2, 1] and "y", the number of the row.
ArrayRows rows_of(std::int64_t count, std::int64_t first = 0) {
  ArrayRows rows;
  Array x(Dtype::float32, {count, 2, 1}), y(Dtype::int64, {count});
  for (std::int64_t i = 0; i < count; ++i) {
    y.as<std::int64_t>()[i] = first + i;
    for (std::int64_t j = 0; j < 2; ++j) x.as<float>()[2 * i + j] = static_cast<float>(10 * (first + i) + j);
  }
  rows.arrays.add("x", x);
  rows.arrays.add("y", y);
  rows.file = "rows.npz";
  return rows;
}
}  // namespace

TEST_CASE("batches of arrays: an epoch has every row once, in batches of nearly one size") {
  const ArrayBatches batches(rows_of(10), rows_of(5, 100), {4, 7});
  CHECK(batches.epoch_batches() == 3);
  CHECK(batches.rows() == 4);
  BatchArrays batch = batches.blank();
  CHECK(batch.at("x").shape() == Shape{4, 2, 1});
  std::vector<std::int64_t> first, second;
  for (std::uint64_t index = 0; index < 6; ++index) {
    batches.training(index, batch);
    const std::int64_t count = batch.at("y").count();
    CHECK((count == 3 || count == 4));
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t row = batch.at("y").as<std::int64_t>()[i];
      CHECK(batch.at("x")(i, 1, 0) == 10 * row + 1);
      CHECK(batches.training_place(index, "y", i) == "rows.npz, row " + std::to_string(row + 1));
      (index < 3 ? first : second).push_back(row);
    }
  }
  CHECK(std::set<std::int64_t>(first.begin(), first.end()).size() == 10);
  CHECK(std::set<std::int64_t>(second.begin(), second.end()).size() == 10);
  CHECK(first != second);
  CHECK(batches.training_place(0, "z", 0) == "");
  CHECK(batches.training_place(0, "x", 4) == "");
  std::vector<std::int64_t> seen;
  for (std::int64_t index = 0; index < batches.validation_batches(); ++index) {
    batches.validation(index, batch);
    for (std::int64_t i = 0; i < batch.at("y").count(); ++i) seen.push_back(batch.at("y").as<std::int64_t>()[i]);
  }
  CHECK(seen == std::vector<std::int64_t>{100, 101, 102, 103, 104});
  CHECK_THROWS_AS(batches.validation(2, batch), Error);
}

TEST_CASE("batches of arrays: errors") {
  CHECK_THROWS_WITH_AS(ArrayBatches(rows_of(3), rows_of(0), {}), "the validation split has no rows", Error);
  CHECK_THROWS_WITH_AS(ArrayBatches(rows_of(3), rows_of(3), {.rows = 0}), doctest::Contains("at least one row"), Error);
  ArrayRows other = rows_of(3);
  other.arrays.set("y", Array(Dtype::int64, {3, 1}));
  CHECK_THROWS_WITH_AS(ArrayBatches(rows_of(3), other, {}),
                       "array 'y' of the training split is int64 (3,); the validation split has int64 (3, 1)", Error);
  other.arrays.set("y", Array(Dtype::int64, {2}));
  CHECK_THROWS_WITH_AS(ArrayBatches(other, rows_of(3), {}), doctest::Contains("has 2 rows, and 'x' 3"), Error);
  other.arrays.set("y", Array(Dtype::float64, {3}));
  CHECK_THROWS_WITH_AS(ArrayBatches(other, rows_of(3), {}), doctest::Contains("is float64, not float32 or int64"),
                       Error);
}

TEST_CASE("rows are read from safetensors and from CSV files") {
  const TemporaryFile arrays("rows.safetensors");
  save_arrays(arrays.path(),
              {{"a", Array(xt::xarray<double>{{1, 2}, {3, 4}})}, {"b", Array(xt::xarray<std::int32_t>{5, 6})}});
  const ArrayRows all = read_array_rows(arrays.path());
  CHECK(all.arrays.at("a").to<float>() == xt::xarray<float>{{1, 2}, {3, 4}});
  CHECK(all.arrays.at("b").to<std::int64_t>() == xt::xarray<std::int64_t>{5, 6});
  const ArrayRows named = read_array_rows(arrays.path(), {{"x", {"b"}}});
  CHECK(named.arrays.names() == std::vector<std::string>{"x"});
  CHECK_THROWS_WITH_AS(read_array_rows(arrays.path(), {{"x", {"b"}, true}}), doctest::Contains("not a list"), Error);
  save_arrays(arrays.path(), {{"a", Array(Dtype::float32, {2})}, {"b", Array(Dtype::float32, {3})}});
  CHECK_THROWS_WITH_AS(read_array_rows(arrays.path()), (arrays.path() + ": array 'b' has 3 rows, and 'a' 2").c_str(),
                       FileError);

  const TemporaryFile csv("rows.csv", "a,b,kind,c\n1,2,u,3\n4,5,v,6\n");
  const ArrayRows table = read_array_rows(
      csv.path(), {{"x", {"*"}, true}, {"y", {"b"}}, {"label", {"kind"}, false, true}, {"both", {"c", "b"}, true}});
  CHECK(table.arrays.at("x").to<float>() == xt::xarray<float>(xt::xtensor<float, 2>{{1}, {4}}));
  CHECK(table.arrays.at("y").to<float>() == xt::xarray<float>{2, 5});
  CHECK(table.arrays.at("both").to<float>() == xt::xarray<float>{{3, 2}, {6, 5}});
  CHECK(table.arrays.at("label").to<std::int64_t>() == xt::xarray<std::int64_t>{0, 1});
  CHECK(table.labels == std::vector<std::string>{"u", "v"});
  CHECK(table.labelled == "label");
  CHECK(table.place(1) == csv.path() + ", row 2");
  CHECK_THROWS_WITH_AS(read_array_rows(csv.path()), doctest::Contains("inputs must say which columns"), Error);
  const TemporaryFile star("star.csv", "*,a\n1,2\n");
  CHECK_THROWS_WITH_AS(read_array_rows(star.path(), {{"x", {"*"}, true}}), doctest::Contains("has a column named '*'"),
                       FileError);
}

}  // namespace array_batches
