/// Arrays that a batch keeps from step to step, a row at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "row_moves.hpp"
#include "xtape/tape.hpp"

namespace xtape::decode {

/// An array [rows, …] in memory that has room for more, so that players of different sizes share it: each sees its
/// beginning.
class RowBuffer {
 public:
  explicit RowBuffer(Dtype dtype) : dtype_(dtype) {}
  Array array() const { return memory_.first(shape_); }
  const Shape& shape() const { return shape_; }
  std::byte* row(std::int64_t row) { return row == RowMove::aside ? aside() : begin() + row * bytes_per_row(); }
  std::int64_t bytes_per_row() const;

  /// Takes another shape. The bytes at the beginning stay; true where they now stand elsewhere.
  bool reshape(const Shape& shape);

 private:
  std::byte* begin() { return static_cast<std::byte*>(memory_.data()); }
  std::byte* aside();

  Dtype dtype_;
  Shape shape_;
  Array memory_;  // flat
  std::vector<std::byte> aside_;
};

/// What an op `cache` keeps: [rows, …, capacity, …], of which a row's first places are in use.
class CacheState {
 public:
  /// `axis` is that of the places.
  CacheState(const ValueType& type, std::size_t axis);

  Array array() const { return held_.array(); }
  /// Makes room for `rows` rows and `capacity` places, all zero: what is not in use must be finite, for it is
  /// multiplied by zero. True where the memory is elsewhere now.
  bool clear(std::int64_t rows, std::int64_t capacity);
  /// Makes room for more places, and keeps the first past[row] of each row. True as above.
  bool grow(const std::vector<std::int64_t>& past, std::int64_t capacity);
  /// Takes another number of rows; true as above.
  bool set_rows(std::int64_t rows);
  /// Copies `places` places of row `from` to row `to`.
  void move(const RowMove& move, std::int64_t places);

 private:
  std::int64_t capacity() const { return held_.shape()[axis_]; }

  RowBuffer held_;
  Shape shape_;
  std::size_t axis_;
  std::int64_t outer_ = 1;        // stretches of places in a row
  std::int64_t place_bytes_ = 1;  // of one place in one of them
};

}  // namespace xtape::decode
