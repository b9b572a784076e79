// Batches whose rows are drawn by chance.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "xtape/text.hpp"

using namespace xtape;

namespace {
/// Row i: a text of 2 + i % 5 tokens and the number i.
DataRows numbered(int count) {
  DataRows rows = {{{"tokens", Column::Kind::text}, {"number", Column::Kind::number}}, {}};
  for (int i = 0; i < count; ++i)
    rows.rows.push_back({{Tokens(static_cast<std::size_t>(2 + i % 5), 7), {}}, {{}, {static_cast<float>(i)}}});
  return rows;
}

struct Drawn {
  std::vector<int> rows;      // by their numbers
  std::vector<Shape> shapes;  // of the batches
};

Drawn drawn_in(const RowBatches& batches, std::uint64_t draw) {
  Drawn found;
  const auto parts = static_cast<std::uint64_t>(batches.draws().batches);
  BatchArrays batch = batches.blank();
  for (std::uint64_t part = 0; part < parts; ++part) {
    batches.training(draw * parts + part, batch);
    const Array used = batch.at(drawn_rows), number = batch.at("number"), tokens = batch.at("tokens");
    found.shapes.push_back(tokens.shape());
    REQUIRE(used.shape() == Shape{tokens.shape()[0]});
    for (std::int64_t i = 0; i < used.count(); ++i) {
      const bool is_row = used.as<float>()[i] == 1;
      CHECK((is_row || used.as<float>()[i] == 0));
      CHECK(tokens.as<std::int64_t>()[i * tokens.shape()[1]] == 7);  // padding repeats rows
      const auto row = static_cast<int>(number.as<float>()[i]);
      if (is_row) found.rows.push_back(row);
      if (found.rows.empty())
        CHECK(row == 0);  // the shortest
      else
        CHECK(std::count(found.rows.begin(), found.rows.end(), row) == 1);
    }
  }
  return found;
}
}  // namespace

TEST_CASE("draws have every row at the same rate, each row on its own") {
  constexpr int rows = 40, draws = 4000;
  const RowBatches batches(numbered(rows), numbered(3), {.rows = 5, .seed = 3, .draws = 2});
  CHECK(batches.draws().batches == 2);
  CHECK(batches.draws().expected == 10);
  CHECK(batches.draws().rows == rows);
  CHECK(batches.draws().rate() == 0.25);
  CHECK(batches.epoch_batches() == 8);  // four draws have all rows once on average
  std::vector<int> times(rows, 0);
  int both = 0;  // rows 0 and 1
  double squares = 0;
  for (std::uint64_t draw = 0; draw < draws; ++draw) {
    const Drawn found = drawn_in(batches, draw);
    const std::set<int> distinct(found.rows.begin(), found.rows.end());
    REQUIRE(distinct.size() == found.rows.size());
    for (const int row : found.rows) ++times[static_cast<std::size_t>(row)];
    both += static_cast<int>(distinct.count(0) * distinct.count(1));
    squares += std::pow(static_cast<double>(found.rows.size()) - 10, 2);
  }
  const auto near = [&](double count, double probability) {  // within five standard deviations
    return std::abs(count - draws * probability) < 5 * std::sqrt(draws * probability * (1 - probability));
  };
  for (const int count : times) CHECK(near(count, 0.25));
  CHECK(near(both, 0.0625));
  CHECK(squares / draws == doctest::Approx(40 * 0.25 * 0.75).epsilon(0.1));  // the variance of their number
}

TEST_CASE("a draw depends on the seed and its number alone, and the parts of a draw on its rows") {
  const RowBatches batches(numbered(50), numbered(3), {.rows = 20, .bucket = 1, .seed = 3, .draws = 1});
  const RowBatches parts(numbered(50), numbered(3), {.rows = 4, .bucket = 1, .seed = 3, .draws = 5});
  const RowBatches other(numbered(50), numbered(3), {.rows = 20, .bucket = 1, .seed = 4, .draws = 1});
  std::map<std::uint64_t, std::vector<int>> first;
  for (const std::uint64_t draw : {7, 0, 3, 1}) first[draw] = drawn_in(batches, draw).rows;
  for (const std::uint64_t draw : {0, 1, 3, 7}) {
    CHECK(drawn_in(batches, draw).rows == first[draw]);
    CHECK(drawn_in(other, draw).rows != first[draw]);
    const Drawn found = drawn_in(parts, draw);
    CHECK(found.rows == first[draw]);  // in the same order, from short to long
    REQUIRE(found.shapes.size() == 5);
    for (const Shape& shape : found.shapes) CHECK(shape[0] == 8);
    CHECK(std::is_sorted(first[draw].begin(), first[draw].end(), [](int a, int b) { return a % 5 < b % 5; }));
  }
  CHECK(first[0] != first[1]);
}

TEST_CASE("a draw of all rows has all, and one without rows has padding") {
  const RowBatches all(numbered(9), numbered(3), {.rows = 3, .draws = 3});
  CHECK(drawn_in(all, 5).rows.size() == 9);
  CHECK(all.draws().rate() == 1);
  const RowBatches few(numbered(60), numbered(3), {.rows = 1, .draws = 1});
  std::size_t empty = 0;
  for (std::uint64_t draw = 0; draw < 60; ++draw) {
    const Drawn found = drawn_in(few, draw);
    CHECK(found.shapes[0][0] == 8);
    if (found.rows.empty()) ++empty;
  }
  CHECK(empty > 5);  // 60 / e are expected
  CHECK(empty < 40);
}

TEST_CASE("the blank batch of draws is as large as almost all, and evaluation batches are as ever") {
  const RowBatches batches(numbered(1000), numbered(30), {.rows = 64, .seed = 1, .draws = 2});
  const BatchArrays blank = batches.blank();
  CHECK(blank.at("tokens").shape() == Shape{104, 6});  // (128 + 6 * sqrt(128)) / 2, rounded up
  CHECK(batches.rows() == 104);
  for (std::uint64_t draw = 0; draw < 200; ++draw)
    for (const Shape& shape : drawn_in(batches, draw).shapes) CHECK(shape[0] <= 104);
  const RowBatches plain(numbered(1000), numbered(30), {.rows = 64, .seed = 1});
  CHECK(plain.draws().batches == 0);
  CHECK(batches.validation_batches() == plain.validation_batches());
  BatchArrays a = batches.blank(), b = plain.blank();
  batches.validation(0, a);
  plain.validation(0, b);
  CHECK(!a.has(drawn_rows));
  CHECK(a.at("number").shape() == b.at("number").shape());
}

TEST_CASE("draws know where their rows come from") {
  DataRows rows = numbered(20);
  for (std::uint32_t i = 0; i < 20; ++i) rows.texts.push_back(i);
  rows.place = [](std::size_t text, std::size_t column) { return std::to_string(text) + " " + std::to_string(column); };
  const RowBatches batches(rows, numbered(3), {.rows = 3, .draws = 2});
  BatchArrays batch = batches.blank();
  batches.training(5, batch);
  const Array used = batch.at(drawn_rows), number = batch.at("number");
  for (std::int64_t i = 0; i < used.count(); ++i) {
    const std::string place = std::to_string(static_cast<int>(number.as<float>()[i])) + " 1";
    CHECK(batches.training_place(5, "number", i) == (used.as<float>()[i] == 1 ? place : ""));
  }
}

TEST_CASE("draws that cannot be are errors") {
  // 2^31 tokens are the most. The average draw has fewer, the largest one more.
  DataRows with_long = numbered(11000);
  with_long.rows[0][0].tokens.resize(214000, 7);
  CHECK_NOTHROW(RowBatches(with_long, numbered(3), {.rows = 9000, .draws = 1}));
  CHECK_THROWS_WITH_AS(RowBatches(with_long, numbered(3), {.rows = 10000, .draws = 1}),
                       doctest::Contains("a batch of 10600 rows of 214000 tokens is too large"), Error);
  CHECK_THROWS_WITH_AS(RowBatches(numbered(10), numbered(3), {.rows = 4, .draws = 3}),
                       "a draw has 4 * 3 rows on average (batch.size * batch.accumulate), more than the 10 of the "
                       "training split",
                       Error);
  CHECK_THROWS_AS(RowBatches(numbered(10), numbered(3), {.rows = 4, .draws = -1}), Error);
  CHECK_THROWS_AS(RowBatches(numbered(10), numbered(3), {.tokens = 8, .draws = 1}), Error);
  const std::int64_t huge = std::int64_t{1} << 60;
  CHECK_THROWS_AS(RowBatches(numbered(10), numbered(3), {.rows = 4, .draws = huge}), Error);
}
