// Packs texts into full rows.
#include <algorithm>
#include <map>
#include <numeric>

#include "base/messages/wording.hpp"
#include "xtape/text.hpp"

namespace xtape {

namespace {
using Cell = DataRows::Cell;

/// A text, or a part of one that is too long for a row: the tokens [first, last) of a row.
struct TextPart {
  std::uint32_t row;
  std::size_t first, last;
  std::int64_t inputs() const { return static_cast<std::int64_t>(last - first) - 1; }
};

bool has_targets(const Cell& cell, const TextPart& part) {
  for (std::size_t i = part.first + 1; i < part.last; ++i)
    if (i >= cell.given.size() || !cell.given[i]) return true;
  return false;
}

/// Returns all texts and parts that have targets, the longest first.
std::vector<TextPart> text_parts(const DataRows& rows, std::int64_t columns) {
  const auto most = static_cast<std::size_t>(columns);
  std::vector<TextPart> parts;
  for (std::uint32_t row = 0; row < rows.rows.size(); ++row) {
    const Cell& cell = rows.rows[row][0];
    for (std::size_t first = 0; first + 1 < cell.tokens.size(); first += most) {
      const TextPart part = {row, first, std::min(cell.tokens.size(), first + most + 1)};
      if (has_targets(cell, part)) parts.push_back(part);
    }
  }
  std::ranges::stable_sort(parts, [](const TextPart& a, const TextPart& b) { return a.inputs() > b.inputs(); });
  return parts;
}

/// Appends a text to a packed row. Its first token is given.
void append_part(Cell& to, const Cell& from, const TextPart& part) {
  to.starts.push_back(static_cast<std::uint32_t>(to.tokens.size()));
  to.given.resize(to.tokens.size());
  for (std::size_t i = part.first; i < part.last; ++i) {
    to.tokens.push_back(from.tokens[i]);
    to.given.push_back(i == part.first || (i < from.given.size() && from.given[i]));
  }
}
}  // namespace

DataRows packed(DataRows rows, std::int64_t columns) {
  if (columns < 1) throw Error("packed rows must have at least one token, not " + std::to_string(columns));
  if (rows.columns.size() != 1 || rows.columns[0].kind != Column::Kind::target)
    throw Error("only rows with a single column, a target, can be packed");
  DataRows made{rows.columns, {}, rows.place, {}};
  made.columns[0].packed = true;
  std::multimap<std::int64_t, std::size_t> room;  // of the rows that are not full
  for (const TextPart& part : text_parts(rows, columns)) {
    const auto found = room.lower_bound(part.inputs());
    const std::size_t row = found == room.end() ? made.rows.size() : found->second;
    const std::int64_t left = (found == room.end() ? columns : found->first) - part.inputs();
    if (found != room.end()) {
      room.erase(found);
    } else {
      made.rows.emplace_back(1);
      if (rows.place) made.texts.push_back(rows.texts[part.row]);
    }
    append_part(made.rows[row][0], rows.rows[part.row][0], part);
    if (left > 0) room.emplace(left, row);
  }
  return made;
}

}  // namespace xtape
