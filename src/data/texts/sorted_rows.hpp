/// The rows of a split, and the ranges of rows that form batches.
#pragma once

#include <algorithm>
#include <numeric>

#include "base/arrays/lengths.hpp"
#include "data/texts/texts.hpp"
#include "xtape/text.hpp"

namespace xtape::rows {

using Cell = DataRows::Cell;

/// If the option `tokens` is set, batches that are full have a multiple of `unit` rows where possible. All draws have
/// one. There are then fewer shapes of batches.
inline constexpr std::int64_t unit = 8;

/// A range of a split's rows sorted by length, and the shape of the batch that they form.
struct Cut {
  std::size_t first = 0;
  std::size_t count = 0;
  std::int64_t rows = 0;              // of the batch: count, or more in a draw, which copies of rows fill up
  std::vector<std::int64_t> lengths;  // padded length of the texts, by column; 0 for labels and numbers
  bool drawn = false;                 // whether the batch has the array of drawn rows

  std::int64_t longest() const { return *std::ranges::max_element(lengths); }
  std::int64_t elements() const { return rows * std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}); }
};

/// Rows, sorted by length and cut into batches. Rows of equal lengths may change places between epochs. The sequence of
/// lengths stays the same, so the batches have the same shapes in every epoch.
class SortedRows {
 public:
  SortedRows(DataRows rows, const RowBatchesOptions& options, const std::string& name) : rows_(std::move(rows)) {
    if (rows_.rows.empty()) throw Error("the " + name + " split has no rows");
    if (rows_.columns.empty()) throw Error("rows must have at least one column");
    for (const std::vector<Cell>& row : rows_.rows) {
      if (row.size() != columns().size()) throw Error("a row must have one cell for each column");
      for (std::size_t i = 0; i < row.size(); ++i) {
        check(columns()[i], row[i]);
        lengths_.push_back(length_of(columns()[i], row[i], options.bucket));
      }
    }
    std::vector<std::uint32_t> order(size());
    std::iota(order.begin(), order.end(), 0U);
    sort(order);
    for (std::size_t at = 0; at < order.size(); at += cuts_.back().count) cuts_.push_back(cut(order, at, options));
    places_ = std::move(order);
  }

  const std::vector<Column>& columns() const { return rows_.columns; }
  const std::vector<Cut>& cuts() const { return cuts_; }
  /// Returns the indices of the rows, sorted by length.
  const std::vector<std::uint32_t>& places() const { return places_; }
  const std::vector<Cell>& row(std::uint32_t place) const { return rows_.rows[place]; }
  std::size_t size() const { return rows_.rows.size(); }
  /// Returns the origin of a cell of a row, or "" if it is not known.
  std::string place_of(std::uint32_t place, std::size_t column) const {
    return rows_.place && place < rows_.texts.size() ? rows_.place(rows_.texts[place], column) : "";
  }

  /// Sorts stably by the length of the last column, then of the column before it, and so on.
  void sort(std::vector<std::uint32_t>& order) const {
    std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) {
      for (std::size_t i = columns().size(); i > 0; --i)
        if (length(a, i - 1) != length(b, i - 1)) return length(a, i - 1) < length(b, i - 1);
      return false;
    });
  }

  /// Returns the drawn rows from `first` to `last` as one batch.
  Cut part(const std::vector<std::uint32_t>& drawn, std::size_t first, std::size_t last) const {
    Cut made{first, last - first, round_up(std::max<std::int64_t>(1, static_cast<std::int64_t>(last - first)), unit),
             std::vector<std::int64_t>(columns().size(), 0), true};
    if (first == last) lengthen(made, places_[0]);  // copies of the shortest row fill it up
    for (std::size_t i = first; i < last; ++i) lengthen(made, drawn[i]);
    check_batch_size(made.rows, std::max<std::int64_t>(1, made.longest()));
    return made;
  }

 private:
  /// Throws Error if the cell does not fit the column.
  static void check(const Column& column, const Cell& cell) {
    const auto exactly = [&](std::size_t count, std::int64_t wanted, const char* what) {
      if (static_cast<std::int64_t>(count) != wanted)
        throw Error("a row of column '" + column.name + "' has " + std::to_string(count) + " " + what + ", not " +
                    std::to_string(wanted));
    };
    if (column.kind == Column::Kind::label) return exactly(cell.tokens.size(), 1, "labels");
    if (column.kind == Column::Kind::number)
      return exactly(cell.numbers.size(), std::max<std::int64_t>(1, column.width), "numbers");
    if (cell.tokens.size() < 2) throw Error("a text must have at least its start and its end token");
    if (cell.given.size() > cell.tokens.size())
      throw Error(std::to_string(cell.given.size()) + " given tokens are not in a text of " +
                  std::to_string(cell.tokens.size()));
    if (!cell.starts.empty() && !column.packed) throw Error("a row of several texts needs a packed column");
    for (std::size_t i = 0; i < cell.starts.size(); ++i)
      if (i == 0 ? cell.starts[0] != 0 : cell.starts[i] < cell.starts[i - 1] + 2)
        throw Error("the first text of a row begins at 0, and each text has at least two tokens");
    if (!cell.starts.empty() && cell.starts.back() + 2 > cell.tokens.size())
      throw Error("the last text of a row must have at least two tokens");
  }
  static std::int64_t length_of(const Column& column, const Cell& cell, std::int64_t bucket) {
    if (column.kind == Column::Kind::label || column.kind == Column::Kind::number) return 0;
    // The inputs of a text are its tokens without the last one. The predicted tokens are those without the first one.
    const std::int64_t texts =
        column.kind != Column::Kind::target ? 0 : std::max<std::int64_t>(1, std::ssize(cell.starts));
    return round_up(std::ssize(cell.tokens) - texts, bucket);
  }
  std::int64_t length(std::uint32_t place, std::size_t column) const {
    return lengths_[place * columns().size() + column];
  }

  void lengthen(Cut& cut, std::uint32_t place) const {
    for (std::size_t c = 0; c < cut.lengths.size(); ++c) cut.lengths[c] = std::max(cut.lengths[c], length(place, c));
  }

  /// Returns the batch that begins at `first`, with as many rows as the options allow. It has no rows of padding:
  /// losses that are means, statistics and comparisons of rows would count them.
  Cut cut(const std::vector<std::uint32_t>& order, std::size_t first, const RowBatchesOptions& options) const {
    Cut made{first, 0, 0, std::vector<std::int64_t>(columns().size(), 0)};
    for (std::size_t i = first; i < order.size(); ++i) {
      Cut next = made;
      lengthen(next, order[i]);
      const std::int64_t fitting = options.tokens / std::max<std::int64_t>(1, next.longest());
      const std::int64_t most = options.tokens == 0 ? options.rows
                                : fitting < unit    ? std::max<std::int64_t>(1, fitting)
                                                    : fitting / unit * unit;
      if (made.rows >= most) break;
      next.rows = static_cast<std::int64_t>(++next.count);
      made = std::move(next);
    }
    check_batch_size(made.rows, std::max<std::int64_t>(1, made.longest()));
    return made;
  }

  DataRows rows_;
  std::vector<std::int64_t> lengths_;  // [rows, columns]
  std::vector<Cut> cuts_;
  std::vector<std::uint32_t> places_;
};

}  // namespace xtape::rows
