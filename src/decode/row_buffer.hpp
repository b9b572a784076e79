/// Arrays that a batch keeps between steps. Their rows can be moved.
#pragma once

#include <cstdint>
#include <vector>

#include "xtape/tape.hpp"

namespace xtape::decode {

// A schedule of copies that permutes, duplicates and drops rows of an array in place.

/// Copies row `from` to row `to`. One of the two may be `aside`, a buffer for one row.
struct RowMove {
  static constexpr std::int32_t aside = -1;
  std::int32_t from = 0;
  std::int32_t to = 0;
};

/// Returns the moves after which row i holds the former contents of row rows[i]. Rows that stay are not written. Every
/// other row is written once. The first row of each cycle is also copied to `aside`.
std::vector<RowMove> row_moves(const std::vector<std::int32_t>& rows);

/// An array [rows, …] at the beginning of a buffer. The buffer may be larger, so that players of different sizes can
/// share it.
class RowBuffer {
 public:
  explicit RowBuffer(Dtype dtype) : dtype_(dtype) {}
  Array array() const { return Array(memory_).first(shape_); }
  const Shape& shape() const { return shape_; }
  std::byte* row(std::int64_t row) { return row == RowMove::aside ? aside() : begin() + row * bytes_per_row(); }
  std::int64_t bytes_per_row() const;

  /// Changes the shape. Keeps the bytes at the beginning. Returns whether the buffer was reallocated.
  bool reshape(const Shape& shape);

 private:
  std::byte* begin() { return static_cast<std::byte*>(memory_.data()); }
  std::byte* aside();

  Dtype dtype_;
  Shape shape_;
  Array memory_;  // one-dimensional
  std::vector<std::byte> aside_;
};

/// The state of an op `cache`: [rows, …, capacity, …]. Each row uses its first positions.
class CacheState {
 public:
  /// `axis` is the axis of the positions.
  CacheState(const ValueType& type, std::size_t axis);

  Array array() const { return held_.array(); }
  /// Makes room for `rows` rows of `capacity` positions and sets them to zero. Unused positions must be finite, because
  /// they are multiplied by zero. Returns whether the buffer was reallocated.
  bool clear(std::int64_t rows, std::int64_t capacity);
  /// Makes room for more positions. Keeps the first past[row] positions of each row and sets the others to zero.
  /// Returns whether the buffer was reallocated.
  bool grow(const std::vector<std::int64_t>& past, std::int64_t capacity);
  /// Changes the number of rows. New rows are zero. Returns whether the buffer was reallocated.
  bool set_rows(std::int64_t rows);
  /// Copies the first `places` positions of row move.from to row move.to.
  void move(const RowMove& move, std::int64_t places);

 private:
  std::int64_t capacity() const { return held_.shape()[axis_]; }

  RowBuffer held_;
  Shape shape_;
  std::size_t axis_;
  std::int64_t outer_ = 1;        // the number of runs of positions in a row
  std::int64_t place_bytes_ = 1;  // the number of bytes of one position in a run
};

}  // namespace xtape::decode
