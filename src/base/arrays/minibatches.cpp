#include "xtape/minibatches.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "base/arrays/elements.hpp"
#include "base/arrays/order.hpp"

namespace xtape {

namespace {
// The finaliser of SplitMix64 (Steele, Lea, Flood, 2014).
std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}
}  // namespace

std::uint64_t draw_below(std::uint64_t bound, std::uint64_t seed, std::uint64_t stream, std::uint64_t counter) {
  const std::uint64_t bits = mix(mix(mix(seed) ^ stream) ^ counter);
  // The high half of the product is uniform, apart from a bias of at most bound / 2^64.
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(bits) * bound) >> 64);
}

std::vector<std::uint32_t> shuffled(std::uint32_t count, std::uint64_t seed, std::uint64_t stream) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  for (std::uint32_t i = count; i > 1; --i) std::swap(order[i - 1], order[draw_below(i, seed, stream, i)]);
  return order;
}

namespace {
/// Returns the number of rows. Throws if the arrays have different numbers of rows.
std::int64_t rows_of(const std::vector<ArrayView>& arrays, const char* who) {
  if (arrays.empty()) throw Error(std::string(who) + ": there is no array");
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const Shape& shape = arrays[i].shape();
    const std::string which = std::string(who) + ": array " + std::to_string(i + 1) + " has ";
    if (arrays[i].data() == nullptr) throw Error(which + "no elements: it is empty");
    if (shape.empty()) throw ShapeError(which + "no axis of rows: its shape is ()");
    if (shape[0] != arrays[0].shape()[0])
      throw ShapeError(which + std::to_string(shape[0]) + " rows, its shape being " + to_string(shape) +
                       ", and array 1 has " + std::to_string(arrays[0].shape()[0]));
  }
  const std::int64_t rows = arrays[0].shape()[0];
  if (rows > std::numeric_limits<std::uint32_t>::max())
    throw Error(std::string(who) + ": there are " + std::to_string(rows) + " rows, more than 2^32 - 1");
  return rows;
}
}  // namespace

struct RowReader::Data {
  std::vector<ArrayView> arrays;
  BatchOptions options;
  std::int64_t rows = 0, batches = 0;
  std::vector<std::uint32_t> order;
  std::vector<Array> memory;     // for each array: the memory of a whole batch
  std::vector<ArrayView> given;  // the last batch that was read
};

RowReader::RowReader(std::vector<ArrayView> arrays, const BatchOptions& options) : data_(new Data{}) {
  Data& d = *data_;
  d.rows = rows_of(arrays, "batches");
  d.arrays = std::move(arrays);
  d.options = options;
  if (options.size < 1) throw Error("batches: a batch has at least one row, not " + std::to_string(options.size));
  d.batches = d.rows / options.size + (d.rows % options.size != 0 && !options.drop_last ? 1 : 0);
  if (d.batches == 0)
    throw Error("batches: " + std::to_string(d.rows) + " rows are not one batch of " + std::to_string(options.size));
  for (const ArrayView& each : d.arrays)
    d.memory.emplace_back(each.dtype(), with_rows(each.shape(), std::min(d.rows, options.size)));
  d.given.resize(d.arrays.size());
  set_epoch(0);
}

std::int64_t RowReader::batches() const {
  return data_->batches;
}

void RowReader::set_epoch(std::uint64_t epoch) {
  Data& d = *data_;
  if (d.options.shuffle) {
    d.order = shuffled(static_cast<std::uint32_t>(d.rows), d.options.seed, streams::epochs + 2 * epoch);
  } else if (d.order.empty()) {
    d.order.resize(static_cast<std::size_t>(d.rows));
    std::iota(d.order.begin(), d.order.end(), 0U);
  }
}

const std::vector<ArrayView>& RowReader::read(std::int64_t index) {
  Data& d = *data_;
  if (index < 0 || index >= d.batches)
    throw Error("batches: there is no batch " + std::to_string(index) + ", only " + std::to_string(d.batches));
  const std::int64_t first = index * d.options.size, count = std::min(d.options.size, d.rows - first);
  for (std::size_t i = 0; i < d.arrays.size(); ++i) {
    copy_rows(d.arrays[i], d.order.data() + first, count, d.memory[i].data());
    d.given[i] =
        ArrayView(d.memory[i].data(), d.arrays[i].dtype(), Layout::dense(with_rows(d.arrays[i].shape(), count)));
  }
  return d.given;
}

std::vector<Array> split_rows(double fraction, std::uint64_t seed, const std::vector<ArrayView>& arrays) {
  const std::int64_t rows = rows_of(arrays, "split_rows");
  const double wanted = std::round(fraction * static_cast<double>(rows));
  if (!(wanted >= 1 && wanted < static_cast<double>(rows)))
    throw Error("split_rows: both parts must have rows, but " + std::to_string(fraction) + " of " +
                std::to_string(rows) + " leaves one of them without");
  const auto first = static_cast<std::int64_t>(wanted);
  const std::vector<std::uint32_t> order = shuffled(static_cast<std::uint32_t>(rows), seed, streams::split);
  std::vector<Array> parts;
  for (const ArrayView& each : arrays)
    for (const auto& [begin, count] : {std::pair(std::int64_t{0}, first), {first, rows - first}}) {
      Array part(each.dtype(), with_rows(each.shape(), count));
      copy_rows(each, order.data() + begin, count, part.data());
      parts.push_back(std::move(part));
    }
  return parts;
}

void copy_rows(const ArrayView& from, const std::uint32_t* rows, std::int64_t count, void* to) {
  const Layout& layout = from.layout();
  const Layout row = {Shape(layout.shape.begin() + 1, layout.shape.end()),
                      Strides(layout.strides.begin() + 1, layout.strides.end()), 0};
  const auto element = static_cast<std::int64_t>(size_of(from.dtype()));
  const std::int64_t bytes = count_of(row.shape) * element;
  if (bytes == 0) return;
  auto* at = static_cast<std::byte*>(to);
  for (std::int64_t i = 0; i < count; ++i, at += bytes) {
    const std::int64_t offset = layout.offset + static_cast<std::int64_t>(rows[i]) * layout.strides[0];
    if (row.contiguous())
      std::memcpy(at, static_cast<const std::byte*>(from.data()) + offset * element, static_cast<std::size_t>(bytes));
    else
      ArrayView(from.data(), from.dtype(), {row.shape, row.strides, offset}).copy_to(at);
  }
}

}  // namespace xtape
