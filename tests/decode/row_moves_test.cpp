#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>

#include "decode/row_buffer.hpp"

using namespace xtape::decode;

namespace {
/// What the rows hold after the moves, of rows that held their own numbers.
std::vector<std::int32_t> moved(const std::vector<std::int32_t>& rows, std::int32_t before) {
  std::vector<std::int32_t> held;
  for (std::int32_t i = 0; i < std::max(before, static_cast<std::int32_t>(rows.size())); ++i) held.push_back(i);
  std::int32_t aside = -7;
  for (const RowMove& move : row_moves(rows)) {
    const std::int32_t value = move.from == RowMove::aside ? aside : held[static_cast<std::size_t>(move.from)];
    (move.to == RowMove::aside ? aside : held[static_cast<std::size_t>(move.to)]) = value;
  }
  held.resize(rows.size());
  return held;
}
}  // namespace

TEST_CASE("row moves bring every row where it is wanted, and leave alone what stays") {
  CHECK(row_moves({0, 1, 2}).empty());
  CHECK(row_moves({0, 0}).size() == 1);
  CHECK(row_moves({1, 0, 2}).size() == 3);  // one by way of the place aside
  std::mt19937 generator(1);
  for (int round = 0; round < 2000; ++round) {
    const auto before = static_cast<std::int32_t>(1 + generator() % 7);
    std::vector<std::int32_t> rows(1 + generator() % 9);
    for (std::int32_t& row : rows) row = static_cast<std::int32_t>(generator() % static_cast<unsigned>(before));
    REQUIRE(moved(rows, before) == rows);
    std::set<std::int32_t> written;
    for (const RowMove& move : row_moves(rows)) {
      if (move.to == RowMove::aside) continue;
      REQUIRE(rows[static_cast<std::size_t>(move.to)] != move.to);
      REQUIRE(written.insert(move.to).second);
    }
  }
}
