#include <algorithm>
#include <memory>
#include <utility>

#include "base/threads/threads.hpp"
#include "kernels/math/lanes.hpp"
#include "kernels/products/axes.hpp"
#include "kernels/table/scratch.hpp"

namespace xtape {

namespace {
constexpr int tile_lines = 4;  // lines of a; their terms of a chunk stay in the first-level cache
constexpr int tile_columns = many_registers ? 6 : 3;  // lines of b
constexpr std::int64_t chunk_terms = 1024;  // terms that a tile sums in registers before the lanes are added up
constexpr std::int64_t most_groups = 16;    // groups of chunks, each with its own sums

/// Sums `runs` runs for a tile of rows and columns. Adds to `to` if `add`. Not inlined, because the variables of its
/// caller would take registers.
template <class T, int rows, int columns>
[[gnu::noinline]] void dot_tile(const std::array<const T*, tile_lines>& a, const std::array<const T*, tile_columns>& b,
                                const std::int64_t* in_a, const std::int64_t* in_b, std::int64_t runs,
                                std::int64_t length, T* to, std::int64_t to_row, bool add) {
  using Batch = xsimd::batch<T>;
  constexpr std::size_t pieces = std::tuple_size_v<Line<T>>;
  constexpr auto width = static_cast<std::int64_t>(Batch::size), line = static_cast<std::int64_t>(pieces) * width;
  Line<T> totals[rows][columns];
  for (std::size_t piece = 0; piece < pieces; ++piece) {  // one after the other, because a tile fills the registers
    const std::int64_t start = static_cast<std::int64_t>(piece) * width;
    Batch sums[rows][columns];
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i)
#pragma GCC unroll 16
      for (int j = 0; j < columns; ++j) sums[i][j] = Batch(T{});
    for (std::int64_t run = 0; run < runs; ++run)
      for (std::int64_t t = start; t < length; t += line) {
        const std::int64_t at_a = in_a[run] + t, at_b = in_b[run] + t;
        Batch right[columns];
#pragma GCC unroll 16
        for (int j = 0; j < columns; ++j) right[j] = Batch::load_unaligned(b[j] + at_b);
#pragma GCC unroll 16
        for (int i = 0; i < rows; ++i) {
          const Batch left = Batch::load_unaligned(a[i] + at_a);
#pragma GCC unroll 16
          for (int j = 0; j < columns; ++j) sums[i][j] = fused(left, right[j], sums[i][j]);
        }
      }
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i)
#pragma GCC unroll 16
      for (int j = 0; j < columns; ++j) totals[i][j][piece] = sums[i][j];
  }
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) {
      const T sum = add_line<T>(totals[i][j]);
      T& place = to[i * to_row + j];
      place = add ? place + sum : sum;
    }
}

/// Computes a tile with fewer rows or columns than a full tile.
template <class T>
void dot_tile_of(int rows, int columns, const std::array<const T*, tile_lines>& a,
                 const std::array<const T*, tile_columns>& b, const std::int64_t* in_a, const std::int64_t* in_b,
                 std::int64_t runs, std::int64_t length, T* to, std::int64_t to_row, bool add) {
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j)
      dot_tile<T, 1, 1>({a[static_cast<std::size_t>(i)]}, {b[static_cast<std::size_t>(j)]}, in_a, in_b, runs, length,
                        to + i * to_row + j, to_row, add);
}

template <class T>
struct Dots {
  DotsPlan plan;
  std::int64_t rows, columns, runs;
  std::int64_t chunk_runs, chunks, groups;

  explicit Dots(DotsPlan given)
      : plan(std::move(given)),
        rows(static_cast<std::int64_t>(plan.lines[0].size())),
        columns(static_cast<std::int64_t>(plan.lines[1].size())),
        runs(static_cast<std::int64_t>(plan.runs[0].size())),
        chunk_runs(std::max<std::int64_t>(1, chunk_terms / plan.length)),
        chunks(ceiling(runs, chunk_runs)),
        groups(std::min(most_groups, chunks)) {}

  std::int64_t bands() const { return ceiling(rows, tile_lines); }

  /// Sums a group of chunks for a band of rows, into the sums of this group.
  void add_up(const T* a, const T* b, std::int64_t group, std::int64_t band, T* sums) const {
    const std::int64_t top = band * tile_lines, height = std::min<std::int64_t>(tile_lines, rows - top);
    std::array<const T*, tile_lines> left{};
    for (std::int64_t i = 0; i < height; ++i)
      left[static_cast<std::size_t>(i)] = a + plan.lines[0][static_cast<std::size_t>(top + i)];
    const std::int64_t begin = group * chunks / groups, end = (group + 1) * chunks / groups;
    for (std::int64_t chunk = begin; chunk < end; ++chunk) {
      const std::int64_t first = chunk * chunk_runs, count = std::min(chunk_runs, runs - first);
      const std::int64_t *in_a = plan.runs[0].data() + first, *in_b = plan.runs[1].data() + first;
      for (std::int64_t column = 0; column < columns; column += tile_columns) {
        const std::int64_t breadth = std::min<std::int64_t>(tile_columns, columns - column);
        std::array<const T*, tile_columns> right{};
        for (std::int64_t j = 0; j < breadth; ++j)
          right[static_cast<std::size_t>(j)] = b + plan.lines[1][static_cast<std::size_t>(column + j)];
        T* to = sums + top * columns + column;
        if (height == tile_lines && breadth == tile_columns)
          dot_tile<T, tile_lines, tile_columns>(left, right, in_a, in_b, count, plan.length, to, columns,
                                                chunk > begin);
        else
          dot_tile_of<T>(static_cast<int>(height), static_cast<int>(breadth), left, right, in_a, in_b, count,
                         plan.length, to, columns, chunk > begin);
      }
    }
  }

  void run(const T* a, const T* b, T* c, T* sums) const {
    parallel_for(plan.threads, groups * bands(), 1, [&](std::int64_t begin, std::int64_t finish) {
      for (std::int64_t task = begin; task < finish; ++task)
        add_up(a, b, task / bands(), task % bands(), sums + task / bands() * rows * columns);
    });
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) {
        T total{};
        for (std::int64_t group = 0; group < groups; ++group) total += sums[(group * rows + i) * columns + j];
        T& place = c[plan.places[0][static_cast<std::size_t>(i)] + plan.places[1][static_cast<std::size_t>(j)]];
        place = plan.accumulate ? place + total : total;
      }
  }
};

/// Returns, for each array, the offsets of all elements of some axes.
template <std::size_t N>
std::array<std::vector<std::int64_t>, N> all_offsets(const Loops<N>& loops) {
  std::array<std::vector<std::int64_t>, N> found;
  for (std::int64_t i = 0; i < loops.count(); ++i) {
    const auto offsets = loops.offsets(i, loops.rank());
    for (std::size_t k = 0; k < N; ++k) found[k].push_back(offsets[k]);
  }
  return found;
}
}  // namespace

[[gnu::cold]] std::optional<DotsPlan> dots_of(const Product& product, const std::vector<Axis>& axes) {
  // If one side has few lines, tiles would spend most time on packing the many lines of the other side. If both sides
  // have many lines, or if runs are short, tiles are faster.
  constexpr std::int64_t few_lines = 32, most_lines = 4096, long_run = 16, many_terms = 2048, most_runs = 1 << 16;
  const auto line = static_cast<std::int64_t>(64 / size_of(product.dtype));
  if (!has_fma || product.narrow[0] || product.narrow[1] || product.fixed >= 0 || rounds_to_bfloat16(product.precision))
    return std::nullopt;
  std::array<Loops<2>, 2> sides;  // lines of a and b, with strides in the operand and in c
  Loops<2> sums;                  // strides in a and b
  std::optional<std::int64_t> inner;
  for (const Axis& axis : axes) {
    if (axis.role == Role::batch) return std::nullopt;
    if (axis.role == Role::m) sides[0].add(axis.size, {axis.strides[0], axis.strides[2]});
    if (axis.role == Role::n) sides[1].add(axis.size, {axis.strides[1], axis.strides[2]});
    if (axis.role != Role::k) continue;
    if (axis.strides[0] == 1 && axis.strides[1] == 1)
      inner = axis.size;
    else
      sums.add(axis.size, {axis.strides[0], axis.strides[1]});
  }
  if (!inner) return std::nullopt;
  sums.add(*inner, {1, 1});
  sums.merge();
  const std::int64_t few = std::min(sides[0].count(), sides[1].count()),
                     many = std::max(sides[0].count(), sides[1].count());
  if (few > few_lines || few < 4 || many < 8 || many > most_lines || sums.count() < many_terms) return std::nullopt;
  const std::size_t last = sums.rank() - 1;
  std::int64_t pieces = 1;  // parts of a run, because a whole run may be too long for a chunk
  while (sums.sizes[last] > pieces * chunk_terms) ++pieces;
  const std::int64_t length = sums.sizes[last] / pieces;
  if (sums.sizes[last] % pieces != 0 || length % line != 0 || length < long_run) return std::nullopt;
  sums.sizes[last] = pieces;
  for (Strides& strides : sums.strides) strides[last] = length;
  if (sums.count() > most_runs) return std::nullopt;

  DotsPlan plan;
  plan.length = length;
  plan.accumulate = product.accumulate;
  plan.threads = product.threads;
  plan.swapped = sides[0].count() > sides[1].count();
  auto runs = all_offsets(sums);
  const std::array<std::int64_t, 2> offsets{product.a.offset, product.b.offset};
  for (std::size_t side = 0; side < 2; ++side) {
    const std::size_t operand = plan.swapped ? 1 - side : side;
    auto found = all_offsets(sides[operand]);
    for (std::int64_t& line : found[0]) line += offsets[operand];
    if (side == 0)
      for (std::int64_t& place : found[1]) place += product.c.offset;
    plan.lines[side] = std::move(found[0]);
    plan.places[side] = std::move(found[1]);
    plan.runs[side] = std::move(runs[operand]);
  }
  return plan;
}

template <class T>
[[gnu::cold]] PlannedProduct make_dots(DotsPlan plan) {
  if constexpr (has_fma) {
    const auto dots = std::make_shared<const Dots<T>>(std::move(plan));
    PlannedProduct planned;
    planned.way = ProductWay::dots;
    planned.scratch_bytes =
        whole_lines(static_cast<std::size_t>(dots->groups * dots->rows * dots->columns) * sizeof(T));
    planned.multiply = [dots](const void* a, const void* b, void* c, void* scratch, const void*) {
      const bool swapped = dots->plan.swapped;
      dots->run(static_cast<const T*>(swapped ? b : a), static_cast<const T*>(swapped ? a : b), static_cast<T*>(c),
                static_cast<T*>(scratch));
    };
    return planned;
  } else {
    return {};
  }
}
template PlannedProduct make_dots<float>(DotsPlan);

}  // namespace xtape
