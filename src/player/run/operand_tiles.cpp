#include "player/run/operand_tiles.hpp"

#include <algorithm>
#include <cstring>

#include "base/arrays/lengths.hpp"

namespace xtape {

namespace {
/// Calls f(word, from, to) with a word of `bytes` bytes and pointers to such words.
template <class F>
void with_words(std::size_t bytes, const void* from, void* to, const F& f) {
  const auto call = [&](auto word) {
    f(word, static_cast<const decltype(word)*>(from), static_cast<decltype(word)*>(to));
  };
  if (bytes == 8) return call(std::uint64_t{});
  if (bytes == 4) return call(std::uint32_t{});
  if (bytes == 2) return call(std::uint16_t{});
  call(std::uint8_t{});
}

/// Copies `runs` runs of `length` elements. The runs are `step` elements apart. A run with stride 0 repeats one
/// element.
template <class Word, class Length>
void copy_runs(const Word* from, std::int64_t step, std::int64_t stride, std::int64_t runs, Length length, Word* to) {
  for (std::int64_t run = 0; run < runs; ++run, from += step, to += length)
    if (stride == 1)
      std::copy_n(from, static_cast<std::size_t>(length), to);
    else
      std::fill_n(to, static_cast<std::size_t>(length), *from);
}
}  // namespace

Layout merged(const Layout& layout) {
  Layout result;
  result.offset = layout.offset;
  for (std::size_t i = 0; i < layout.shape.size(); ++i) {
    const std::int64_t size = layout.shape[i];
    const std::int64_t stride = layout.strides[i];
    if (size == 1) continue;
    if (!result.shape.empty() && result.strides.back() == stride * size) {
      result.shape.back() *= size;
      result.strides.back() = stride;
    } else {
      result.shape.push_back(size);
      result.strides.push_back(stride);
    }
  }
  if (result.shape.empty()) {
    result.shape.push_back(1);
    result.strides.push_back(1);
  }
  return result;
}

OperandTiles::OperandTiles(const Layout& layout, const Shape& shape, std::size_t element_bytes)
    : layout_(merged(layout.broadcast_to(shape))), bytes_(element_bytes) {
  uniform_ = std::all_of(layout_.strides.begin(), layout_.strides.end(), [](std::int64_t s) { return s == 0; }) ||
             count_of(shape) == 1;
  dense_ = !uniform_ && layout_.shape.size() == 1 && layout_.strides[0] == 1;
  // no runs: add an axis of size 1 as the axis of runs
  if (layout_.strides.back() != 0 && layout_.strides.back() != 1) {
    layout_.shape.push_back(1);
    layout_.strides.push_back(1);
  }
  run_ = layout_.shape.back();
}

std::int64_t OperandTiles::offset_of(std::int64_t row) const {
  std::int64_t offset = layout_.offset;
  for (std::size_t axis = layout_.shape.size() - 1; axis-- > 0;) {
    offset += row % layout_.shape[axis] * layout_.strides[axis];
    row /= layout_.shape[axis];
  }
  return offset;
}

const void* OperandTiles::tile(const void* data, std::int64_t first, std::int64_t count, void* scratch) const {
  const char* base = static_cast<const char*>(data);
  const auto bytes = static_cast<std::int64_t>(bytes_);
  if (dense_) return base + (layout_.offset + first) * bytes;
  const std::int64_t stride = layout_.strides.back();
  std::int64_t row = first / run_;
  std::int64_t within = first % run_;
  if (stride == 1 && within + count <= run_) return base + (offset_of(row) + within) * bytes;
  with_words(bytes_, data, scratch, [&]<class Word>(Word /*word*/, const Word* from, Word* to) {
    const std::size_t outer = layout_.shape.size() - 1;  // the number of axes of runs
    const std::int64_t step = outer > 0 ? layout_.strides[outer - 1] : 0;
    const std::int64_t rows = outer > 0 ? layout_.shape[outer - 1] : 1;  // runs that are `step` elements apart
    for (std::int64_t left = count; left > 0;) {
      const Word* run = from + offset_of(row) + within * stride;
      const bool whole = within == 0 && left >= run_;
      const std::int64_t runs = whole ? std::min(left / run_, rows - row % rows) : 1;
      const std::int64_t length = whole ? run_ : std::min(left, run_ - within);
      with_length(length, [&](auto words) { copy_runs(run, step, stride, runs, words, to); });
      to += runs * length;
      left -= runs * length;
      row += runs;
      within = 0;
    }
  });
  return scratch;
}

void OperandTiles::fill(const void* data, std::int64_t count, void* scratch) const {
  with_words(bytes_, element(data), scratch,
             [&]<class Word>(Word /*word*/, const Word* from, Word* to) { copy_runs(from, 0, 0, 1, count, to); });
}

}  // namespace xtape
