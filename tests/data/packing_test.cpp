// Several texts in one row: full rows, positions, segments and targets.
#include <doctest/doctest.h>

#include <map>
#include <set>

#include "base/arrays/order.hpp"
#include "xtape/error.hpp"
#include "xtape/text.hpp"

using namespace xtape;

namespace {
using Cell = DataRows::Cell;

/// Texts of given lengths, whose tokens are all different. Every third token is given.
DataRows numbered_texts(const std::vector<std::size_t>& lengths, bool some_given = false) {
  DataRows rows{{{"text", Column::Kind::target}}, {}};
  std::int32_t token = 1;
  for (const std::size_t length : lengths) {
    Cell cell;
    for (std::size_t i = 0; i < length; ++i) {
      cell.given.push_back(some_given && token % 3 == 0);
      cell.tokens.push_back(token++);
    }
    rows.rows.push_back({cell});
  }
  return rows;
}

/// The pairs of a token and its target, with the number of positions before it in its text.
using Predictions = std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>>;

Predictions predictions(const RowBatches& batches, std::int64_t columns) {
  Predictions all;
  BatchArrays batch = batches.blank();
  for (std::int64_t index = 0; index < batches.validation_batches(); ++index) {
    batches.validation(index, batch);
    const auto values = [&](const char* name) { return batch.at(name).as<std::int64_t>(); };
    CHECK(batch.at("tokens").shape()[1] == columns);
    for (std::int64_t i = 0; i < batch.at("tokens").count(); ++i) {
      const bool padding = values("segments")[i] < 0;
      if (padding) {
        CHECK(values("targets")[i] == ignored_target);
        CHECK(values("positions")[i] == 0);
        continue;
      }
      // A text's tokens are consecutive numbers, so a segment mixes no texts if they go up with the positions.
      if (values("positions")[i] > 0) {
        CHECK(values("segments")[i - 1] == values("segments")[i]);
        CHECK(values("tokens")[i - 1] + 1 == values("tokens")[i]);
        CHECK(values("positions")[i - 1] + 1 == values("positions")[i]);
      }
      if (values("targets")[i] >= 0)
        CHECK(all.emplace(values("tokens")[i], std::pair(values("targets")[i], values("positions")[i])).second);
    }
  }
  return all;
}
}  // namespace

TEST_CASE("packed rows have every target of their texts once, at its position") {
  std::vector<std::size_t> lengths;
  for (std::uint64_t i = 0; i < 200; ++i) lengths.push_back(2 + draw_below(60, 5, 1, i));
  for (const bool some_given : {false, true}) {
    const DataRows rows = numbered_texts(lengths, some_given);
    const RowBatches batches(packed(rows, 64), packed(rows, 64), {.rows = 3, .bucket = 64, .seed = 1});
    Predictions expected;
    for (const auto& row : rows.rows)
      for (std::size_t i = 0; i + 1 < row[0].tokens.size(); ++i)
        if (!row[0].given[i + 1]) expected[row[0].tokens[i]] = {row[0].tokens[i + 1], static_cast<std::int64_t>(i)};
    CHECK(predictions(batches, 64) == expected);
  }
}

TEST_CASE("packed rows are nearly full") {
  std::vector<std::size_t> lengths;
  std::int64_t inputs = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    lengths.push_back(2 + draw_below(100, 6, 1, i));
    inputs += static_cast<std::int64_t>(lengths.back()) - 1;
  }
  const DataRows rows = packed(numbered_texts(lengths), 256);
  CHECK(static_cast<double>(inputs) / static_cast<double>(256 * rows.rows.size()) > 0.98);
}

TEST_CASE("a text that is longer than a row is cut, and keeps its targets") {
  const DataRows rows = packed(numbered_texts({11}), 4);
  std::multiset<std::size_t> sizes;
  for (const auto& row : rows.rows) sizes.insert(row[0].tokens.size());
  CHECK(sizes == std::multiset<std::size_t>{3, 5, 5});  // 4 + 4 + 2 = 10 targets
  DataRows prompt = numbered_texts({11});
  std::fill_n(prompt.rows[0][0].given.begin(), 9, true);
  CHECK(packed(prompt, 4).rows.size() == 1);  // parts without targets are left out
}

TEST_CASE("packing refuses other rows") {
  CHECK_THROWS_WITH_AS(packed(numbered_texts({3}), 0), doctest::Contains("at least one token"), Error);
  DataRows other = numbered_texts({3});
  other.columns[0].kind = Column::Kind::text;
  CHECK_THROWS_WITH_AS(packed(other, 4), doctest::Contains("a single column, a target"), Error);
  DataRows rows = packed(numbered_texts({3, 3}), 8);
  rows.columns[0].packed = false;
  CHECK_THROWS_WITH_AS(RowBatches(rows, rows, {}), doctest::Contains("needs a packed column"), Error);
  rows = packed(numbered_texts({3, 3}), 8);
  rows.rows[0][0].starts = {0, 1};
  CHECK_THROWS_WITH_AS(RowBatches(rows, rows, {}), doctest::Contains("at least two tokens"), Error);
}
