#include <doctest/doctest.h>

#include <map>
#include <numeric>
#include <set>

#include "base/arrays/order.hpp"
#include "xtape/text.hpp"

using namespace xtape;

namespace {
Tokens counting(std::int32_t first, std::int32_t count) {
  Tokens tokens(static_cast<std::size_t>(count));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

std::vector<std::int64_t> elements(const BatchArrays& batch, const std::string& name) {
  const Array& array = batch.at(name);
  return {array.as<std::int64_t>(), array.as<std::int64_t>() + array.count()};
}
}  // namespace

TEST_CASE("split_text splits at a fraction of the characters, never inside a character") {
  const TextSplit split = split_text("ééééééééab", 0.9);
  CHECK(split.training ==
        "éééééééé"
        "a");
  CHECK(split.validation == "b");
  CHECK(split_text("abcd", 1).validation.empty());
  CHECK(split_text("abc", 0.5).training == "a");
  CHECK_THROWS_AS(split_text("abc", 0), Error);
  CHECK_THROWS_AS(split_text("abc", 1.5), Error);
}

TEST_CASE("training rows are blocks of the training split with the next tokens as targets") {
  const TextBatches batches(counting(0, 50), counting(50, 20), {.rows = 3, .block_size = 8, .seed = 7});
  BatchArrays batch = batches.blank();
  CHECK(batch.at("tokens").shape() == Shape{3, 8});
  std::set<std::int64_t> starts;
  for (std::uint64_t index = 0; index < 200; ++index) {
    batches.training(index, batch);
    const auto tokens = elements(batch, "tokens");
    const auto targets = elements(batch, "targets");
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      CHECK(tokens[i] == tokens[i / 8 * 8] + static_cast<std::int64_t>(i % 8));
      CHECK(targets[i] == tokens[i] + 1);
      CHECK(targets[i] < 50);
    }
    for (std::size_t row = 0; row < 3; ++row) starts.insert(tokens[row * 8]);
  }
  CHECK(starts.size() == 42);  // every possible start of a block, as in nanoGPT: len - block_size
}

TEST_CASE("a batch is a function of seed and index alone") {
  const TextBatches a(counting(0, 500), counting(0, 20), {.rows = 4, .block_size = 8, .seed = 1});
  const TextBatches again(counting(0, 500), counting(0, 20), {.rows = 4, .block_size = 8, .seed = 1});
  const TextBatches other(counting(0, 500), counting(0, 20), {.rows = 4, .block_size = 8, .seed = 2});
  BatchArrays x = a.blank();
  BatchArrays y = a.blank();
  for (std::uint64_t i = 0; i < 5; ++i) a.training(i, x);
  again.training(4, y);
  CHECK(elements(x, "tokens") == elements(y, "tokens"));
  other.training(4, y);
  CHECK(elements(x, "tokens") != elements(y, "tokens"));
  a.training(5, y);
  CHECK(elements(x, "tokens") != elements(y, "tokens"));
}

namespace {
/// Whether each row of the batch has a target.
bool all_rows_count(const BatchArrays& batch) {
  const Array& targets = batch.at("targets");
  const std::int64_t columns = targets.shape()[1];
  for (const std::int64_t* row = targets.as<std::int64_t>(); row < targets.as<std::int64_t>() + targets.count();
       row += columns)
    if (std::count(row, row + columns, ignored_target) == columns) return false;
  return true;
}
}  // namespace

TEST_CASE("validation counts every token once for any batch size") {
  for (const std::int32_t size : {2, 8, 9, 10, 49, 50, 64}) {
    for (const std::int64_t rows : {1, 3}) {
      const TextBatches batches(counting(0, 50), counting(100, size), {.rows = rows, .block_size = 8});
      BatchArrays batch = batches.blank();
      std::vector<std::int64_t> seen;
      for (std::int64_t index = 0; index < batches.validation_batches(); ++index) {
        batches.validation(index, batch);
        CHECK(all_rows_count(batch));
        const auto tokens = elements(batch, "tokens");
        const auto targets = elements(batch, "targets");
        for (std::size_t i = 0; i < targets.size(); ++i) {
          if (targets[i] == ignored_target) continue;
          CHECK(targets[i] == tokens[i] + 1);
          seen.push_back(targets[i]);
        }
      }
      const Tokens all = counting(101, size - 1);  // the first token is not a target
      CHECK(seen == std::vector<std::int64_t>(all.begin(), all.end()));
    }
  }
}

TEST_CASE("consecutive windows: each row reads one strip per epoch and continues from batch to batch") {
  // 3 strips of 34 tokens: 4 windows of 8, whose last target is the strip's token 32.
  const TextBatches batches(counting(0, 103), counting(0, 9),
                            {.rows = 3, .block_size = 8, .order = TextOrder::consecutive});
  CHECK(batches.epoch_batches() == 4);
  BatchArrays batch = batches.blank();
  std::map<std::int64_t, int> seen;
  std::vector<std::int64_t> before;
  for (std::uint64_t index = 0; index < 8; ++index) {
    batches.training(index, batch);
    const auto tokens = elements(batch, "tokens");
    const auto targets = elements(batch, "targets");
    CHECK(batches.training_continues(index) == (index % 4 != 0));
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      ++seen[tokens[i]];
      CHECK(targets[i] == tokens[i] + 1);
      CHECK(tokens[i] / 34 == static_cast<std::int64_t>(i / 8));
    }
    for (std::size_t row = 0; row < 3; ++row) {
      if (batches.training_continues(index))
        CHECK(tokens[row * 8] == before[row * 8 + 7] + 1);
      else
        CHECK(tokens[row * 8] == static_cast<std::int64_t>(row) * 34);
    }
    before = tokens;
  }
  CHECK(seen.size() == 3 * 32);
  for (const auto& [token, count] : seen) CHECK(count == 2);  // two epochs
}

TEST_CASE("consecutive validation counts every token once, and rows continue from batch to batch") {
  for (const std::int32_t size : {2, 3, 8, 9, 10, 17, 49, 50, 64}) {
    for (const std::int64_t rows : {1, 3, 4}) {
      const TextBatches batches(counting(0, 50), counting(100, size),
                                {.rows = rows, .block_size = 8, .order = TextOrder::consecutive});
      BatchArrays batch = batches.blank();
      std::set<std::int64_t> seen;
      std::vector<std::int64_t> last(static_cast<std::size_t>(rows), -1);
      for (std::int64_t index = 0; index < batches.validation_batches(); ++index) {
        CHECK(batches.validation_continues(index) == (index > 0));
        batches.validation(index, batch);
        CHECK(all_rows_count(batch));
        const auto tokens = elements(batch, "tokens");
        const auto targets = elements(batch, "targets");
        for (std::size_t i = 0; i < targets.size(); ++i) {
          if (targets[i] == ignored_target) {
            last[i / 8] = ignored_target;  // the last token of a strip has no target
            continue;
          }
          CHECK(targets[i] == tokens[i] + 1);
          CHECK(seen.insert(targets[i]).second);
          if (index > 0 || i % 8 > 0) CHECK(last[i / 8] == tokens[i]);
          last[i / 8] = targets[i];
        }
      }
      const Tokens all = counting(101, size - 1);
      CHECK(seen == std::set<std::int64_t>(all.begin(), all.end()));
    }
  }
}

TEST_CASE("random blocks do not continue the batch before") {
  const TextBatches batches(counting(0, 50), counting(50, 40), {.rows = 3, .block_size = 8});
  CHECK(batches.epoch_batches() == 0);
  for (std::uint64_t index = 0; index < 9; ++index) CHECK(!batches.training_continues(index));
  for (std::int64_t index = 0; index < batches.validation_batches(); ++index)
    CHECK(!batches.validation_continues(index));
}

TEST_CASE("splits that are too short are errors") {
  CHECK_THROWS_WITH_AS(TextBatches(counting(0, 8), counting(0, 9), {.rows = 1, .block_size = 8}),
                       "the training split has 8 tokens; blocks of 8 need at least 9", Error);
  CHECK_THROWS_WITH_AS(TextBatches(counting(0, 9), counting(0, 1), {.rows = 1, .block_size = 8}),
                       doctest::Contains("needs at least 2"), Error);
  CHECK_THROWS_AS(TextBatches(counting(0, 9), counting(0, 9), {.rows = 0}), Error);
  CHECK_THROWS_WITH_AS(
      TextBatches(counting(0, 26), counting(0, 9), {.rows = 3, .block_size = 8, .order = TextOrder::consecutive}),
      "the training split has 26 tokens; consecutive blocks of 8 in 3 rows need at least 27", Error);
  CHECK(TextBatches(counting(0, 27), counting(0, 9), {.rows = 3, .block_size = 8, .order = TextOrder::consecutive})
            .epoch_batches() == 1);
}

TEST_CASE("batches of too many tokens are errors, also if the product overflows") {
  for (const TextBatchesOptions& options :
       {TextBatchesOptions{INT64_MAX, 8}, {8, INT64_MAX}, {INT64_MAX, INT64_MAX}, {std::int64_t{1} << 62, 4}})
    CHECK_THROWS_WITH_AS(TextBatches(counting(0, 50), counting(50, 40), options),
                         doctest::Contains("the limit is 2147483648 tokens"), Error);
  const DataRows pairs = {{{"source", Column::Kind::text}, {"target", Column::Kind::target}},
                          {{{{2, 4, 3}, {}}, {{2, 5, 3}, {}}}}};
  CHECK(RowBatches(pairs, pairs, {.rows = INT64_MAX}).rows() == 1);  // there is only one row
  CHECK(RowBatches(pairs, pairs, {.tokens = INT64_MAX}).rows() == 1);
  CHECK_THROWS_WITH_AS(RowBatches(pairs, pairs, {.bucket = INT64_MAX}),
                       doctest::Contains("`bucket` must be 1 to 2147483648"), Error);
}

TEST_CASE("draws are uniform and a shuffle is a permutation") {
  std::map<std::uint64_t, int> seen;
  for (std::uint64_t i = 0; i < 60000; ++i) ++seen[draw_below(6, 3, 1, i)];
  CHECK(seen.size() == 6);
  for (const auto& [value, count] : seen) CHECK(count == doctest::Approx(10000).epsilon(0.05));
  const auto order = shuffled(1000, 3, 1);
  CHECK(std::set<std::uint32_t>(order.begin(), order.end()).size() == 1000);
  CHECK(order != shuffled(1000, 3, 2));
  CHECK(order == shuffled(1000, 3, 1));
}

TEST_CASE("shuffled blocks: an epoch has every complete block once, in an order that seed and epoch determine") {
  for (const std::int64_t blocks : {1, 2, 7, 64, 65, 1000}) {
    CAPTURE(blocks);
    const auto tokens = static_cast<std::int32_t>(blocks * 8 + 5);
    const TextBatchesOptions options = {.rows = 3, .block_size = 8, .seed = 5, .order = TextOrder::shuffled};
    const TextBatches batches(counting(0, tokens), counting(0, 9), options);
    REQUIRE(batches.epoch_batches() == (blocks + 2) / 3);
    BatchArrays batch = batches.blank();
    const auto epoch = [&](const TextBatches& of, std::int64_t number) {
      std::vector<std::int64_t> starts;
      for (std::int64_t i = 0; i < of.epoch_batches(); ++i) {
        of.training(static_cast<std::uint64_t>(number * of.epoch_batches() + i), batch);
        const auto read = elements(batch, "tokens"), targets = elements(batch, "targets");
        for (std::size_t at = 0; at < read.size(); ++at) {
          CHECK(read[at] == read[at / 8 * 8] + static_cast<std::int64_t>(at % 8));
          CHECK(targets[at] == read[at] + 1);
          if (at % 8 == 0) starts.push_back(read[at]);
        }
      }
      return starts;
    };
    const auto first = epoch(batches, 0), second = epoch(batches, 1);
    const std::set<std::int64_t> different(first.begin(), first.end());
    CHECK(std::ssize(first) == blocks);
    CHECK(std::ssize(different) == blocks);
    CHECK(*different.rbegin() == (blocks - 1) * 8);
    CHECK(std::set<std::int64_t>(second.begin(), second.end()) == different);
    if (blocks < 64) continue;
    CHECK(first != second);
    CHECK(!std::is_sorted(first.begin(), first.end()));
    TextBatchesOptions other = options;
    other.seed = 6;
    CHECK(epoch(TextBatches(counting(0, tokens), counting(0, 9), other), 0) != first);
  }
}
