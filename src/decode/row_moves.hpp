/// The order in which rows of an array are copied onto each other, so that each ends where it is wanted.
#pragma once

#include <cstdint>
#include <vector>

namespace xtape::decode {

/// Copy row `from` to row `to`; one of them may be `aside`, a place for one row.
struct RowMove {
  static constexpr std::int32_t aside = -1;
  std::int32_t from = 0;
  std::int32_t to = 0;
};

/// Moves after which row i is what row rows[i] was. Rows that stay are not touched, and no row is copied twice but the
/// first of each cycle.
std::vector<RowMove> row_moves(const std::vector<std::int32_t>& rows);

}  // namespace xtape::decode
