#include <doctest/doctest.h>

#include <map>
#include <set>

#include "xtape/text.hpp"

using namespace xtape;

namespace {
constexpr std::int32_t start = 2, end = 3;

/// A sentence of `length` times the token `number`, between start and end.
Tokens sentence(std::int32_t number, std::size_t length) {
  Tokens tokens(length + 2, number);
  tokens.front() = start;
  tokens.back() = end;
  return tokens;
}

DataRows pairs(const std::vector<std::pair<Tokens, Tokens>>& all, std::int32_t source_pad = 0,
               std::int32_t target_pad = 0) {
  DataRows rows = {{{"source", Column::Kind::text, source_pad}, {"target", Column::Kind::target, target_pad}}, {}};
  for (const auto& pair : all) rows.rows.push_back({{pair.first, {}}, {pair.second, {}}});
  return rows;
}

/// Pairs of lengths 1 to 9, with sources one token longer; pair i has the token 10 + i.
DataRows some_pairs(std::int32_t count) {
  std::vector<std::pair<Tokens, Tokens>> all;
  for (std::int32_t i = 0; i < count; ++i) {
    const auto length = static_cast<std::size_t>(1 + i * 7 % 9);
    all.emplace_back(sentence(10 + i, length + 1), sentence(10 + i, length));
  }
  return pairs(all);
}

std::int64_t at(const BatchArrays& batch, const std::string& name, std::int64_t row, std::int64_t column) {
  const Array& array = batch.at(name);
  return array.as<std::int64_t>()[row * array.shape()[1] + column];
}

/// The indices of the pairs in a batch.
std::vector<std::int64_t> pairs_in(const BatchArrays& batch) {
  std::vector<std::int64_t> found;
  for (std::int64_t row = 0; row < batch.at("source").shape()[0]; ++row) {
    CHECK(at(batch, "source", row, 0) == start);
    found.push_back(at(batch, "source", row, 1) - 10);
  }
  return found;
}

using Shapes = std::multiset<std::vector<std::int64_t>>;
std::vector<std::int64_t> shape_of(const BatchArrays& batch) {
  const Shape source = batch.at("source").shape(), tokens = batch.at("tokens").shape();
  return {source[0], source[1], tokens[1]};
}
}  // namespace

TEST_CASE("a row of pairs has source, target and shifted target, then padding") {
  const DataRows one = pairs({{{2, 11, 12, 13, 3}, {2, 21, 3}}}, 0, 9);
  const RowBatches batches(one, one, {.rows = 2, .bucket = 4});
  BatchArrays batch = batches.blank();
  batches.training(0, batch);
  CHECK(shape_of(batch) == std::vector<std::int64_t>{1, 8, 4});
  const std::vector<std::int64_t> source = {2, 11, 12, 13, 3, 0, 0, 0}, tokens = {2, 21, 9, 9},
                                  targets = {21, 3, -1, -1};
  for (std::int64_t i = 0; i < 8; ++i) CHECK(at(batch, "source", 0, i) == source[static_cast<std::size_t>(i)]);
  for (std::int64_t i = 0; i < 4; ++i) {
    CHECK(at(batch, "tokens", 0, i) == tokens[static_cast<std::size_t>(i)]);
    CHECK(at(batch, "targets", 0, i) == targets[static_cast<std::size_t>(i)]);
  }
}

TEST_CASE("an epoch has every pair once, in a new order, in batches of the same shapes") {
  const RowBatches batches(some_pairs(100), some_pairs(7), {.rows = 8, .seed = 5});
  CHECK(batches.epoch_batches() == 13);
  BatchArrays batch = batches.blank();
  std::map<std::uint64_t, std::vector<std::int64_t>> orders;
  std::map<std::uint64_t, Shapes> shapes;
  for (std::uint64_t index = 0; index < 39; ++index) {
    batches.training(index, batch);
    shapes[index / 13].insert(shape_of(batch));
    for (const std::int64_t pair : pairs_in(batch)) orders[index / 13].push_back(pair);
  }
  for (auto& [epoch, order] : orders) {
    CHECK(order.size() == 100);
    CHECK(std::set<std::int64_t>(order.begin(), order.end()).size() == 100);
    CHECK(shapes[epoch] == shapes[0]);
  }
  CHECK(orders[0] != orders[1]);
  CHECK(orders[1] != orders[2]);
}

TEST_CASE("a batch of pairs is a function of seed and index, independent of the order of calls") {
  const RowBatches a(some_pairs(60), some_pairs(5), {.rows = 8, .seed = 5});
  const RowBatches b(some_pairs(60), some_pairs(5), {.rows = 8, .seed = 5});
  const RowBatches other(some_pairs(60), some_pairs(5), {.rows = 8, .seed = 6});
  BatchArrays x = a.blank(), y = b.blank();
  bool differs = false;
  for (std::uint64_t index = 0; index < 16; ++index) a.training(index, x);
  for (const std::uint64_t index : {std::uint64_t{15}, std::uint64_t{2}, std::uint64_t{9}}) {
    a.training(index, x);
    b.training(index, y);
    CHECK(pairs_in(x) == pairs_in(y));
    other.training(index, y);
    differs = differs || pairs_in(x) != pairs_in(y);
  }
  CHECK(differs);
}

TEST_CASE("a budget of tokens gives short sentences more rows") {
  const RowBatches batches(some_pairs(300), some_pairs(5), {.tokens = 120, .bucket = 2});
  BatchArrays batch = batches.blank();
  std::set<std::int64_t> rows;
  std::size_t pairs = 0;
  for (std::uint64_t index = 0; index < static_cast<std::uint64_t>(batches.epoch_batches()); ++index) {
    batches.training(index, batch);
    const auto shape = shape_of(batch);
    CHECK(shape[0] * std::max(shape[1], shape[2]) <= 120);
    rows.insert(shape[0]);
    pairs += pairs_in(batch).size();
  }
  CHECK(pairs == 300);
  CHECK(rows.size() > 1);
  CHECK(batches.rows() == *rows.rbegin());
}

TEST_CASE("the validation split is read once, and the blank batch is the largest") {
  const RowBatches batches(some_pairs(30), some_pairs(20), {.rows = 8});
  BatchArrays batch = batches.blank();
  const BatchArrays blank = batches.blank();
  std::multiset<std::int64_t> seen;
  for (std::int64_t index = 0; index < batches.validation_batches(); ++index) {
    batches.validation(index, batch);
    CHECK(batch.at("source").count() <= blank.at("source").count());
    for (const std::int64_t pair : pairs_in(batch)) seen.insert(pair);
  }
  CHECK(seen.size() == 20);
  CHECK(std::set<std::int64_t>(seen.begin(), seen.end()).size() == 20);
  CHECK(batches.columns() == 12);  // a source of 10 tokens between start and end
}

TEST_CASE("splits without pairs and sentences without end tokens are errors") {
  CHECK_THROWS_WITH_AS(RowBatches({}, some_pairs(3), {}), "the training split has no rows", Error);
  CHECK_THROWS_WITH_AS(RowBatches(some_pairs(3), {}, {}), "the validation split has no rows", Error);
  CHECK_THROWS_AS(RowBatches(pairs({{{2}, {2, 3}}}), some_pairs(3), {}), Error);
  CHECK_THROWS_WITH_AS(RowBatches(some_pairs(3), {{{"text", Column::Kind::target}}, {{{{2, 3}, {}}}}}, {}),
                       doctest::Contains("must have the same columns"), Error);
  CHECK_THROWS_WITH_AS(RowBatches({{{"text"}}, {{}}}, some_pairs(3), {}), "a row must have one cell for each column",
                       Error);
  CHECK_THROWS_AS(RowBatches(some_pairs(3), some_pairs(3), {.rows = 0}), Error);
}

namespace {
using Kind = Column::Kind;
/// Five rows of a text, a label, and optionally two numbers; row i has i + 1 tokens 10 + i.
DataRows classified(bool numbers) {
  DataRows rows = {{{"tokens", Kind::text}, {"label", Kind::label}}, {}};
  if (numbers) rows.columns.push_back({"x", Kind::number, 0, 2});
  for (std::int32_t i = 0; i < 5; ++i) {
    rows.rows.push_back({{sentence(10 + i, static_cast<std::size_t>(i) + 1), {}}, {{i % 2}, {}}});
    if (numbers) rows.rows.back().push_back({{}, {static_cast<float>(i), -1}});
  }
  return rows;
}
}  // namespace

TEST_CASE("a batch has texts and labels, and no rows of padding") {
  const RowBatches batches(classified(false), classified(false), {.rows = 4, .bucket = 1});
  BatchArrays batch = batches.blank();
  CHECK(batches.columns() == 7);
  batches.validation(0, batch);
  CHECK(batch.size() == 2);
  CHECK(batch.at("tokens").shape() == Shape{4, 6});
  CHECK(batch.at("label").shape() == Shape{4});
  for (std::int64_t row = 0; row < 4; ++row) CHECK(batch.at("label").as<std::int64_t>()[row] == row % 2);
  batches.validation(1, batch);
  CHECK(batch.at("label").shape() == Shape{1});
  CHECK(batch.at("label").as<std::int64_t>()[0] == 0);
}

TEST_CASE("batches of any columns have each row of their split once, and no other rows") {
  for (const Kind kind : {Kind::text, Kind::target, Kind::label, Kind::tags, Kind::number})
    for (const RowBatchesOptions& options : {RowBatchesOptions{.rows = 4},
                                             {.rows = 7},
                                             {.rows = 99},
                                             {.tokens = 40},
                                             {.tokens = 150},
                                             {.tokens = 1},
                                             {.tokens = 200, .bucket = 5}}) {
      DataRows rows = {{{"first", Kind::text}, {"second", kind}}, {}};
      for (std::int32_t i = 0; i < 50; ++i) {
        const Tokens text = sentence(10 + i, static_cast<std::size_t>(1 + i * 7 % 9));
        DataRows::Cell second = {text, {}};
        if (kind == Kind::label) second = {{i % 3}, {}};
        if (kind == Kind::number) second = {{}, {1.0F}};
        rows.rows.push_back({{text, {}}, second});
      }
      const RowBatches batches(rows, rows, options);
      for (const bool training : {true, false}) {
        std::vector<std::int64_t> found;
        BatchArrays batch = batches.blank();
        for (std::int64_t i = 0; i < (training ? batches.epoch_batches() : batches.validation_batches()); ++i) {
          training ? batches.training(static_cast<std::uint64_t>(i), batch) : batches.validation(i, batch);
          CHECK(batch[0].value.shape()[0] <= batches.rows());
          for (std::int64_t row = 0; row < batch[0].value.shape()[0]; ++row)
            found.push_back(at(batch, "first", row, 1) - 10);
        }
        std::ranges::sort(found);
        REQUIRE(found.size() == 50);
        for (std::int64_t i = 0; i < 50; ++i) CHECK(found[static_cast<std::size_t>(i)] == i);
      }
    }
}

TEST_CASE("numbers are floats") {
  const RowBatches batches(classified(true), classified(true), {.rows = 4, .bucket = 1});
  BatchArrays batch = batches.blank();
  batches.validation(0, batch);
  CHECK(batch.at("x").shape() == Shape{4, 2});
  CHECK(batch.at("x").as<float>()[2 * 3] == 3);
  CHECK(batch.at("x").as<float>()[2 * 3 + 1] == -1);
  batches.validation(1, batch);
  CHECK(batch.at("tokens").shape() == Shape{1, 7});
  CHECK(batch.at("x").as<float>()[0] == 4);
  // Rows of numbers alone all have the same length.
  DataRows numbers = {{{"y", Kind::number}}, {}};
  for (int i = 0; i < 10; ++i) numbers.rows.push_back({{{}, {static_cast<float>(i)}}});
  const RowBatches alone(numbers, numbers, {.rows = 4, .seed = 2});
  CHECK(alone.epoch_batches() == 3);
  std::set<float> seen;
  for (std::uint64_t index = 0; index < 3; ++index) {
    alone.training(index, batch);
    REQUIRE(batch.size() == 1);
    const Array y = batch.at("y");
    for (std::int64_t i = 0; i < y.count(); ++i) seen.insert(y.as<float>()[i]);
  }
  CHECK(seen.size() == 10);
}
