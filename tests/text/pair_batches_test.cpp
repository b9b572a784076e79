#include <doctest/doctest.h>

#include <limits>
#include <map>
#include <set>

#include "xtape/text.hpp"

using namespace xtape;

namespace {
constexpr std::int32_t start = 2, end = 3;

/// A sentence of `length` tokens between start and end, all of them `number`.
Tokens sentence(std::int32_t number, std::size_t length) {
  Tokens tokens(length + 2, number);
  tokens.front() = start;
  tokens.back() = end;
  return tokens;
}

/// Pairs of lengths 1 to 9, sources one token longer; pair i is made of token 10 + i.
std::vector<Pair> some_pairs(std::int32_t count) {
  std::vector<Pair> pairs;
  for (std::int32_t i = 0; i < count; ++i) {
    const auto length = static_cast<std::size_t>(1 + i * 7 % 9);
    pairs.push_back({sentence(10 + i, length + 1), sentence(10 + i, length)});
  }
  return pairs;
}

std::int64_t at(const Batch& batch, const std::string& name, std::int64_t row, std::int64_t column) {
  const Array array = batch.at(name);
  return array.as<std::int64_t>()[row * array.shape()[1] + column];
}

/// The numbers of the pairs in a batch; -1 for rows that are padding.
std::vector<std::int64_t> pairs_in(const Batch& batch) {
  std::vector<std::int64_t> found;
  for (std::int64_t row = 0; row < batch.at("source").shape()[0]; ++row)
    found.push_back(at(batch, "source", row, 0) == start ? at(batch, "source", row, 1) - 10 : -1);
  return found;
}

using Shapes = std::multiset<std::vector<std::int64_t>>;
std::vector<std::int64_t> shape_of(const Batch& batch) {
  const Shape source = batch.at("source").shape(), tokens = batch.at("tokens").shape();
  return {source[0], source[1], tokens[1]};
}
}  // namespace

TEST_CASE("a row of pairs is source, target and target one further on, then padding") {
  const std::vector<Pair> one = {{{2, 11, 12, 13, 3}, {2, 21, 3}}};
  const PairBatches batches(one, one, {.rows = 2, .bucket = 4, .source_pad = 0, .target_pad = 9});
  Batch batch = batches.blank();
  batches.training(0, batch);
  CHECK(shape_of(batch) == std::vector<std::int64_t>{2, 8, 4});
  const std::vector<std::int64_t> source = {2, 11, 12, 13, 3, 0, 0, 0}, tokens = {2, 21, 9, 9},
                                  targets = {21, 3, -1, -1};
  for (std::int64_t i = 0; i < 8; ++i) CHECK(at(batch, "source", 0, i) == source[static_cast<std::size_t>(i)]);
  for (std::int64_t i = 0; i < 4; ++i) {
    CHECK(at(batch, "tokens", 0, i) == tokens[static_cast<std::size_t>(i)]);
    CHECK(at(batch, "targets", 0, i) == targets[static_cast<std::size_t>(i)]);
    CHECK(at(batch, "tokens", 1, i) == 9);
    CHECK(at(batch, "targets", 1, i) == ignored_target);
    CHECK(at(batch, "source", 1, i) == 0);
  }
}

TEST_CASE("an epoch goes through every pair once, anew each time, in batches of the same shapes") {
  const PairBatches batches(some_pairs(100), some_pairs(7), {.rows = 8, .seed = 5});
  CHECK(batches.epoch_batches() == 13);
  Batch batch = batches.blank();
  std::map<std::uint64_t, std::vector<std::int64_t>> orders;
  std::map<std::uint64_t, Shapes> shapes;
  for (std::uint64_t index = 0; index < 39; ++index) {
    batches.training(index, batch);
    shapes[index / 13].insert(shape_of(batch));
    for (const std::int64_t pair : pairs_in(batch))
      if (pair >= 0) orders[index / 13].push_back(pair);
  }
  for (auto& [epoch, order] : orders) {
    CHECK(order.size() == 100);
    CHECK(std::set<std::int64_t>(order.begin(), order.end()).size() == 100);
    CHECK(shapes[epoch] == shapes[0]);
  }
  CHECK(orders[0] != orders[1]);
  CHECK(orders[1] != orders[2]);
}

TEST_CASE("a batch of pairs is a function of seed and index, in whatever order they are asked for") {
  const PairBatches a(some_pairs(60), some_pairs(5), {.rows = 8, .seed = 5});
  const PairBatches b(some_pairs(60), some_pairs(5), {.rows = 8, .seed = 5});
  const PairBatches other(some_pairs(60), some_pairs(5), {.rows = 8, .seed = 6});
  Batch x = a.blank(), y = b.blank();
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
  const PairBatches batches(some_pairs(300), some_pairs(5), {.tokens = 120, .bucket = 2});
  Batch batch = batches.blank();
  std::set<std::int64_t> rows;
  std::size_t pairs = 0;
  for (std::uint64_t index = 0; index < static_cast<std::uint64_t>(batches.epoch_batches()); ++index) {
    batches.training(index, batch);
    const auto shape = shape_of(batch);
    CHECK(shape[0] * std::max(shape[1], shape[2]) <= 120);
    rows.insert(shape[0]);
    for (const std::int64_t pair : pairs_in(batch)) pairs += pair >= 0 ? 1 : 0;
  }
  CHECK(pairs == 300);
  CHECK(rows.size() > 1);
  CHECK(batches.rows() == *rows.rbegin());
}

TEST_CASE("the validation part comes once, and the blank batch is the largest") {
  const PairBatches batches(some_pairs(30), some_pairs(20), {.rows = 8});
  Batch batch = batches.blank();
  const Batch blank = batches.blank();
  std::multiset<std::int64_t> seen;
  for (std::int64_t index = 0; index < batches.validation_batches(); ++index) {
    batches.validation(index, batch);
    CHECK(batch.at("source").count() <= blank.at("source").count());
    for (const std::int64_t pair : pairs_in(batch))
      if (pair >= 0) seen.insert(pair);
  }
  CHECK(seen.size() == 20);
  CHECK(std::set<std::int64_t>(seen.begin(), seen.end()).size() == 20);
  CHECK(batches.columns() == 12);  // a source of 10 tokens between start and end
}

TEST_CASE("parts without pairs and sentences without ends are errors") {
  CHECK_THROWS_WITH_AS(PairBatches({}, some_pairs(3), {}), "the training part has no sentence pair", Error);
  CHECK_THROWS_WITH_AS(PairBatches(some_pairs(3), {}, {}), "the validation part has no sentence pair", Error);
  CHECK_THROWS_AS(PairBatches({{{2}, {2, 3}}}, some_pairs(3), {}), Error);
  CHECK_THROWS_AS(PairBatches(some_pairs(3), some_pairs(3), {.rows = 0}), Error);
}

TEST_CASE("held-out numbers are not among those that train") {
  const SplitPairs texts = number_words({.training = 5000, .held_out = 1500});
  CHECK(texts.training.source.size() == 5000);
  CHECK(texts.held_out.target.size() == 1500);
  const std::set<std::string> trained(texts.training.source.begin(), texts.training.source.end());
  for (const std::string& words : texts.held_out.source) CHECK(trained.count(words) == 0);
  CHECK(number_words({.training = 10, .held_out = 1500}).held_out.source == texts.held_out.source);
  CHECK_THROWS_AS(number_words({.training = 999000, .held_out = 1001}), Error);
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  CHECK_THROWS_WITH_AS(number_words({.training = huge, .held_out = huge}), doctest::Contains("cannot be taken"), Error);
}
