#include "plan/operand_tiles.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace xtape {

namespace {
constexpr std::int64_t longest_short_run = 4;  // elements; a call for each run would take longer than the copy

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

void copy_run(const void* source, std::int64_t stride, std::int64_t count, std::size_t bytes, void* destination) {
  if (stride == 1) {
    std::memcpy(destination, source, static_cast<std::size_t>(count) * bytes);
    return;
  }
  with_words(bytes, source, destination, [&]<class Word>(Word /*word*/, const Word* from, Word* to) {
    if (stride == 0)
      std::fill(to, to + count, *from);
    else
      for (std::int64_t i = 0; i < count; ++i) to[i] = from[i * stride];
  });
}

/// Copies `runs` runs of `length` elements, at most longest_short_run. The runs are `step` elements apart, and their
/// elements `stride`.
void copy_short_runs(const void* source, std::int64_t step, std::int64_t stride, std::int64_t runs, std::int64_t length,
                     std::size_t bytes, void* destination) {
  with_words(bytes, source, destination, [&]<class Word>(Word /*word*/, const Word* from, Word* to) {
    const auto copy = [&]<std::int64_t constant>(std::integral_constant<std::int64_t, constant> /*length*/) {
      for (std::int64_t row = 0; row < runs; ++row, from += step, to += constant)
        for (std::int64_t i = 0; i < constant; ++i) to[i] = from[i * stride];  // the compiler unrolls this loop
    };
    if (length == 1) return copy(std::integral_constant<std::int64_t, 1>{});
    if (length == 2) return copy(std::integral_constant<std::int64_t, 2>{});
    if (length == 3) return copy(std::integral_constant<std::int64_t, 3>{});
    copy(std::integral_constant<std::int64_t, 4>{});
  });
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
  char* to = static_cast<char*>(scratch);
  for (std::int64_t done = 0; done < count; ++row, within = 0) {
    if (within == 0 && run_ <= longest_short_run && layout_.shape.size() >= 2) {
      const std::size_t axis = layout_.shape.size() - 2;
      const std::int64_t runs = std::min((count - done) / run_, layout_.shape[axis] - row % layout_.shape[axis]);
      if (runs > 0) {
        copy_short_runs(base + offset_of(row) * bytes, layout_.strides[axis], stride, runs, run_, bytes_,
                        to + done * bytes);
        done += runs * run_;
        row += runs - 1;
        continue;
      }
    }
    const std::int64_t take = std::min(count - done, run_ - within);
    copy_run(base + (offset_of(row) + within * stride) * bytes, stride, take, bytes_, to + done * bytes);
    done += take;
  }
  return scratch;
}

void OperandTiles::fill(const void* data, std::int64_t count, void* scratch) const {
  copy_run(element(data), 0, count, bytes_, scratch);
}

}  // namespace xtape
