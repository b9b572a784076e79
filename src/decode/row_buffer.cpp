#include "decode/row_buffer.hpp"

#include <algorithm>
#include <cstring>

namespace xtape::decode {

std::int64_t RowBuffer::bytes_per_row() const {
  std::int64_t elements = 1;
  for (std::size_t i = 1; i < shape_.size(); ++i) elements *= shape_[i];
  return bytes_of(dtype_, elements);
}

std::byte* RowBuffer::aside() {
  aside_.resize(static_cast<std::size_t>(bytes_per_row()));
  return aside_.data();
}

bool RowBuffer::reshape(const Shape& shape) {
  shape_ = shape;
  const std::int64_t count = count_of(shape);
  if (memory_ && count <= memory_.count()) return false;
  Array larger(dtype_, {count});
  if (memory_) std::memcpy(larger.data(), memory_.data(), memory_.bytes());
  memory_ = larger;
  return true;
}

CacheState::CacheState(const ValueType& type, std::size_t axis) : held_(type.dtype), shape_(type.shape), axis_(axis) {
  for (std::size_t i = 1; i < axis; ++i) outer_ *= shape_[i];
  std::int64_t elements = 1;
  for (std::size_t i = axis + 1; i < shape_.size(); ++i) elements *= shape_[i];
  place_bytes_ = bytes_of(type.dtype, elements);
}

bool CacheState::clear(std::int64_t rows, std::int64_t capacity) {
  shape_[0] = rows;
  shape_[axis_] = capacity;
  const bool elsewhere = held_.reshape(shape_);
  std::memset(held_.row(0), 0, static_cast<std::size_t>(rows * held_.bytes_per_row()));
  return elsewhere;
}

bool CacheState::grow(const std::vector<std::int64_t>& past, std::int64_t capacity) {
  const std::int64_t before = this->capacity() * place_bytes_;
  const std::int64_t after = capacity * place_bytes_;
  shape_[axis_] = capacity;
  const bool elsewhere = held_.reshape(shape_);
  std::byte* first = held_.row(0);
  // Goes from the last run to the first, because each run moves to a higher address.
  for (std::int64_t k = std::ssize(past) * outer_; k-- > 0;) {
    const std::int64_t used = past[k / outer_] * place_bytes_;
    std::memmove(first + k * after, first + k * before, static_cast<std::size_t>(used));
    std::memset(first + k * after + used, 0, static_cast<std::size_t>(after - used));
  }
  return elsewhere;
}

bool CacheState::set_rows(std::int64_t rows) {
  const std::int64_t before = shape_[0];
  shape_[0] = rows;
  const bool elsewhere = held_.reshape(shape_);
  if (rows > before)
    std::memset(held_.row(before), 0, static_cast<std::size_t>((rows - before) * held_.bytes_per_row()));
  return elsewhere;
}

void CacheState::move(const RowMove& move, std::int64_t places) {
  const std::byte* from = held_.row(move.from);
  std::byte* to = held_.row(move.to);
  const std::int64_t row_bytes = capacity() * place_bytes_;
  for (std::int64_t i = 0; i < outer_; ++i)
    std::memcpy(to + i * row_bytes, from + i * row_bytes, static_cast<std::size_t>(places * place_bytes_));
}

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
