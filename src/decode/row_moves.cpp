#include <algorithm>

#include "decode/row_buffer.hpp"

namespace xtape::decode {

std::vector<RowMove> row_moves(const std::vector<std::int32_t>& rows) {
  const auto count = static_cast<std::int32_t>(rows.size());
  std::int32_t size = count;
  for (const std::int32_t row : rows) size = std::max(size, row + 1);
  // per row: how many copies of its former contents remain
  std::vector<std::int32_t> readers(static_cast<std::size_t>(size), 0);
  for (const std::int32_t row : rows) ++readers[row];
  std::vector<RowMove> moves;
  std::vector<bool> done(rows.size(), false);
  const auto wanted = [&](std::int32_t row) { return rows[row]; };
  const auto open = [&](std::int32_t row) { return row < count && !done[row] && wanted(row) != row; };
  const auto fill = [&](std::int32_t row, std::int32_t from) {
    moves.push_back({from, row});
    done[row] = true;
  };
  // First writes the rows whose former contents no other row needs. Each copy may free another row.
  for (std::int32_t first = 0; first < count; ++first) {
    std::int32_t row = first;
    while (open(row) && readers[row] == 0) {
      const std::int32_t from = wanted(row);
      fill(row, from);
      --readers[from];
      row = from;
    }
  }
  // The remaining rows form cycles.
  for (std::int32_t first = 0; first < count; ++first) {
    if (!open(first)) continue;
    moves.push_back({first, RowMove::aside});
    std::int32_t row = first;
    for (; wanted(row) != first; row = wanted(row)) fill(row, wanted(row));
    fill(row, RowMove::aside);
  }
  return moves;
}

}  // namespace xtape::decode
