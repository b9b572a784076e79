/// A schedule of copies that permutes, duplicates and drops rows of an array in place.
#pragma once

#include <cstdint>
#include <vector>

namespace xtape::decode {

/// Copies row `from` to row `to`. One of the two may be `aside`, a buffer for one row.
struct RowMove {
  static constexpr std::int32_t aside = -1;
  std::int32_t from = 0;
  std::int32_t to = 0;
};

/// Returns the moves after which row i holds the former contents of row rows[i]. Rows that stay are not written. Every
/// other row is written once. The first row of each cycle is also copied to `aside`.
std::vector<RowMove> row_moves(const std::vector<std::int32_t>& rows);

}  // namespace xtape::decode
