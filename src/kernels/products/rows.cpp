#include <algorithm>
#include <type_traits>
#include <utility>

#include "base/arrays/lengths.hpp"
#include "base/threads/threads.hpp"
#include "kernels/math/lanes.hpp"
#include "kernels/products/block_rows.hpp"

namespace xtape {

namespace {
template <class T>
constexpr int rows_together = std::is_same_v<T, float> ? 8 : 4;
// Elements of a block of the matrix. The block stays in the second-level cache for the next rows.
constexpr std::int64_t block_elements = 1 << 18;
constexpr std::int64_t block_columns = 64;        // columns are distributed to threads in multiples of this
constexpr std::int64_t most_columns = 4096;       // sums that stay in the first-level cache
constexpr std::int64_t worth_a_thread = 1 << 15;  // multiply-adds

/// Returns the plan with m <= n, with the operands exchanged if necessary.
GemmPlan with_few_rows(const GemmPlan& plan) {
  return plan.m <= plan.n ? plan : with_sides_swapped(plan);
}

/// Whether the summed terms are contiguous in both operands.
bool terms_run(const GemmPlan& plan) {
  return plan.k_strides[0] == 1 && plan.k_strides[1] == 1;
}
/// Whether the rows of the matrix and of the result are contiguous.
bool matrix_columns_run(const GemmPlan& plan) {
  return plan.n_strides[1] == 1 && plan.n_strides[2] == 1;
}

/// Whether register `piece` of a line prefetches: once for 32 bytes, however narrow a register is.
template <class T>
constexpr bool prefetches(std::size_t piece) {
  return piece * sizeof(xsimd::batch<T>) % 32 == 0;
}
/// Calls visit(j, piece, lanes) for each register of columns. Narrow registers come by lines, of which not each
/// prefetches.
template <class T, class Visit>
[[gnu::always_inline]] inline void for_columns(std::int64_t count, const Visit& visit) {
  if constexpr (many_registers && !prefetches<T>(1))
    for_lines<T>(count, visit);
  else
    for_lanes<T>(
        count, [&](std::int64_t j, const auto& lanes)
                   __attribute__((always_inline)) { visit(j, std::integral_constant<std::size_t, 0>{}, lanes); });
}

/// Reads a register of the matrix. The end of a row of narrower numbers is read by a call: it takes much code.
template <class T, class W>
[[gnu::always_inline]] inline xsimd::batch<T> read(const AllLanes<T>& lanes, const W* from) {
  return lanes.load(from);
}
template <class T>
[[gnu::always_inline]] inline xsimd::batch<T> read(const FirstLanes<T>& lanes, const T* from) {
  return lanes.load(from);
}
template <class T, class W>
[[gnu::noinline]] xsimd::batch<T> read(const FirstLanes<T>& lanes, const W* from) {
  return lanes.load(from);
}

// In the two functions below, lambdas are inlined and loops of constant length are unrolled, because GCC keeps an array
// of registers in memory otherwise: if code has its address, or an index varies.
constexpr int unrolled = small_code ? 1 : 8;

/// Adds the terms [first, first + terms) to all columns of all rows.
template <class T, class W, int rows, int terms>
void add_terms(const RowColumns<T, W>& p, std::int64_t first) {
  using Batch = xsimd::batch<T>;
  T x[rows][terms];
  for (int i = 0; i < rows; ++i)
    for (int k = 0; k < terms; ++k) x[i][k] = p.x[i * p.x_row + (first + k) * p.x_term];
  const std::int64_t w_term = p.w_term, c_row = p.c_row;  // not read again after each sum that is stored
  const W* const w = p.w + first * w_term;
  T* const c = p.c;
  const bool load = p.add || first > 0;
  const auto add = [&](std::int64_t j, auto piece, const auto& lanes) __attribute__((always_inline)) {
    Batch matrix[terms];
    const W* at = w + j;
#pragma GCC unroll unrolled
    for (int k = 0; k < terms; ++k, at += w_term) {
      matrix[k] = read(lanes, at);
      if (prefetches<T>(piece())) will_read_element(at, terms * w_term);
    }
#pragma GCC unroll unrolled
    for (int i = 0; i < rows; ++i) {
      T* to = c + i * c_row + j;
      Batch sum = load ? lanes.load(to) : Batch(T{});
#pragma GCC unroll unrolled
      for (int k = 0; k < terms; ++k) sum = fused<T>(Batch(x[i][k]), matrix[k], sum);
      lanes.store(to, sum);
    }
  };
  for_columns<T>(p.columns, add);
}

/// The product for a matrix with contiguous rows. Adds multiples of the rows of w to the rows of c.
template <class T, class W, int rows>
void by_terms(const RowColumns<T, W>& p) {
  constexpr int together = rows <= 2 ? 8 : 4;
  std::int64_t k = 0;
  for (; k + together <= p.terms; k += together) add_terms<T, W, rows, together>(p, k);
  for (; k < p.terms; ++k)  // few terms, for which single steps need less code
    for (int i = 0; i < rows; ++i) add_terms<T, W, 1, 1>(p.row(i), k);
}

/// Computes the columns [first, first + columns): for each row, a dot product of contiguous vectors.
template <class T, class W, int rows, int columns>
void multiply_columns(const RowColumns<T, W>& p, std::int64_t first) {
  const W* w = p.w + first * p.w_column;
  const T* x[rows];
  Line<T> sums[rows][columns];
#pragma GCC unroll unrolled
  for (int i = 0; i < rows; ++i) {
    x[i] = p.x + i * p.x_row;
#pragma GCC unroll unrolled
    for (int j = 0; j < columns; ++j) sums[i][j].fill(xsimd::batch<T>(T{}));
  }
  const auto add = [&](std::int64_t k, auto piece, const auto& lanes) __attribute__((always_inline)) {
#pragma GCC unroll unrolled
    for (int j = 0; j < columns; ++j) {
      const xsimd::batch<T> matrix = read(lanes, w + j * p.w_column + k);
      if (prefetches<T>(piece())) will_read_element(w, (j + columns) * p.w_column + k);
#pragma GCC unroll unrolled
      for (int i = 0; i < rows; ++i) sums[i][j][piece] = fused<T>(lanes.load(x[i] + k), matrix, sums[i][j][piece]);
    }
  };
  for_lines<T>(p.terms, add);
#pragma GCC unroll unrolled
  for (int i = 0; i < rows; ++i)
#pragma GCC unroll unrolled
    for (int j = 0; j < columns; ++j) {
      T& to = p.c[i * p.c_row + (first + j) * p.c_column];
      const T sum = add_line<T>(sums[i][j]);
      to = p.add ? to + sum : sum;
    }
}

/// The product for contiguous summed terms. Computes a dot product for every row and column.
template <class T, class W, int rows>
void by_columns(const RowColumns<T, W>& p) {
  constexpr int lines = sizeof(xsimd::batch<T>) == 16 ? 4 : 8;  // of sums, which fit the registers
  constexpr int few = std::min(rows, lines), together = std::min(4, lines / few);
  std::int64_t j = 0;
  for (; j + together <= p.columns; j += together) {
    multiply_columns<T, W, few, together>(p, j);
    if constexpr (few < rows) multiply_columns<T, W, rows - few, together>(p.row(few), j);
  }
  if constexpr (together > 1)
    for (; j < p.columns; ++j)  // few columns
      for (int i = 0; i < rows; ++i) multiply_columns<T, W, 1, 1>(p.row(i), j);
}

template <class T, class W>
using MultiplyRows = void (*)(const RowColumns<T, W>&);
template <class T, class W, int rows, MultiplyRows<T, W> one>
void one_by_one(const RowColumns<T, W>& p) {
  for (int i = 0; i < rows; ++i) one(p.row(i));
}
/// Computes 4, 2 and 1 rows together.
template <class T, class W, int rows, MultiplyRows<T, W> four, MultiplyRows<T, W> two, MultiplyRows<T, W> one>
void in_groups(const RowColumns<T, W>& p) {
  for (int i = 0; i + 4 <= rows; i += 4) four(p.row(i));
  if constexpr (rows % 4 >= 2) two(p.row(rows / 4 * 4));
  if constexpr (rows % 2 == 1) one(p.row(rows - 1));
}
/// Whether each number of rows has a function of its own. Narrow types take less code.
template <class T, class W>
[[maybe_unused]] constexpr bool has_all_rows = std::is_same_v<T, W>;

/// The function for so many rows. `columns`: whether the summed terms are contiguous.
template <class T, class W, bool columns, int rows>
void by_layout(const RowColumns<T, W>& p) {
  if constexpr (columns)
    by_columns<T, W, rows>(p);
  else
    by_terms<T, W, rows>(p);
}
template <class T, class W, bool columns, int rows>
constexpr MultiplyRows<T, W> multiply_rows() {
  constexpr MultiplyRows<T, W> one = by_layout<T, W, columns, 1>;
  if constexpr (small_code)
    return one_by_one<T, W, rows, one>;
  else if constexpr (has_all_rows<T, W>)
    return by_layout<T, W, columns, rows>;
  else
    return in_groups<T, W, rows, by_layout<T, W, columns, 4>, by_layout<T, W, columns, 2>, one>;
}
template <class T, class W, bool columns, int... i>
constexpr std::array<MultiplyRows<T, W>, rows_together<T>> multiply_all(std::integer_sequence<int, i...> /*rows*/) {
  return {multiply_rows<T, W, columns, i + 1>()...};
}

/// A product with a matrix so large that reading it takes nearly all the time. The product is divided along the terms.
/// Each thread then reads contiguous memory. Every chunk of terms has its own sums, which are then added in order. The
/// division does not depend on the number of rows or threads. The bits of a row are therefore independent of them, too.
template <class T, class W>
class Chunked {
 public:
  explicit Chunked(const GemmPlan& plan)
      : plan_(plan), chunk_(ceiling(plan.k, chunks) / chunk_terms * chunk_terms + chunk_terms) {}

  static bool suits(const GemmPlan& plan) {
    return plan.outer.count() == 1 && matrix_columns_run(plan) && plan.n * plan.k >= large_product &&
           plan.n <= most_columns;  // more sums would not stay in the first-level cache
  }
  std::size_t scratch_bytes() const { return static_cast<std::size_t>(chunks * plan_.m * plan_.n) * sizeof(T); }

  void run(const T* x, const W* w, T* c, T* sums) const {
    constexpr auto all_rows = std::make_integer_sequence<int, rows_together<T>>{};
    static constexpr auto multiply = multiply_all<T, W, false>(all_rows);
    const std::int64_t count = ceiling(plan_.k, chunk_), size = plan_.m * plan_.n;
    // If threads are more than chunks, each chunk is divided along the columns.
    const std::int64_t parts = std::clamp<std::int64_t>(2 * plan_.threads / count, 1, ceiling(plan_.n, least_columns));
    const std::int64_t width = ceiling(ceiling(plan_.n, parts), block_columns) * block_columns;
    parallel_for(plan_.threads, count * parts, 1, [&](std::int64_t begin, std::int64_t finish) {
      for (std::int64_t task = begin; task < finish; ++task) {
        const std::int64_t i = task / parts, first = task % parts * width, columns = std::min(width, plan_.n - first);
        for (std::int64_t row = 0; row < plan_.m && columns > 0; row += rows_together<T>) {
          const T* from = x + plan_.offsets[0] + row * plan_.m_strides[0] + i * chunk_ * plan_.k_strides[0];
          const W* chunk = w + plan_.offsets[1] + i * chunk_ * plan_.k_strides[1] + first;
          multiply[std::min<std::int64_t>(rows_together<T>, plan_.m - row) - 1](
              {from, chunk, sums + i * size + row * plan_.n + first, std::min(chunk_, plan_.k - i * chunk_), columns,
               plan_.m_strides[0], plan_.k_strides[0], plan_.k_strides[1], 1, plan_.n, 1, false});
        }
      }
    });
    for (std::int64_t row = 0; row < plan_.m; ++row) {
      T* to = c + plan_.offsets[2] + row * plan_.m_strides[2];
      const T* from = sums + row * plan_.n;
      for_lanes<T>(plan_.n, [&](std::int64_t j, const auto& lanes) {
        xsimd::batch<T> sum = lanes.load(from + j);
        for (std::int64_t i = 1; i < count; ++i) sum += lanes.load(from + i * size + j);
        lanes.store(to + j, plan_.accumulate ? sum + lanes.load(to + j) : sum);
      });
    }
  }

 private:
  static constexpr std::int64_t chunks = 8, chunk_terms = 8;
  static constexpr std::int64_t large_product = 1 << 18;  // multiply-adds of one row
  static constexpr std::int64_t least_columns = 256;  // a thread reads them at once, so that memory is read in lines
  GemmPlan plan_;
  std::int64_t chunk_;  // terms per chunk
};

/// Returns the functions for 1, 2 … rows.
template <class T, class W>
std::array<MultiplyRows<T, W>, rows_together<T>> functions_of(const GemmPlan& plan) {
  constexpr auto all_rows = std::make_integer_sequence<int, rows_together<T>>{};
  if constexpr (is_block_struct<W>) {
    std::array<MultiplyRows<T, W>, rows_together<T>> all;
    all.fill(by_blocks<W>);
    return all;
  } else {
    return matrix_columns_run(plan) ? multiply_all<T, W, false>(all_rows) : multiply_all<T, W, true>(all_rows);
  }
}

template <class T, class W>
MatrixProducts<T> made(const GemmPlan& plan, bool swapped) {
  if constexpr (!is_block_struct<W>)
    if (Chunked<T, W>::suits(plan)) {
      const Chunked<T, W> chunked(plan);
      return {[chunked, swapped](const void* a, const void* b, T* c, void* scratch, const void*) {
                if (swapped) std::swap(a, b);
                chunked.run(static_cast<const T*>(a), static_cast<const W*>(b), c, static_cast<T*>(scratch));
              },
              chunked.scratch_bytes()};
    }
  const auto multiply = functions_of<T, W>(plan);
  const std::int64_t blocks = ceiling(plan.n, block_columns);  // blocks per product
  const std::int64_t at_once = plan.m <= rows_together<T> ? most_columns / plan.m : block_elements / plan.k;
  const std::int64_t most_blocks = std::max<std::int64_t>(1, at_once / block_columns);
  const std::int64_t grain = std::max<std::int64_t>(1, worth_a_thread / (plan.m * block_columns * plan.k));
  return {[plan, multiply, blocks, most_blocks, grain, swapped](const void* a, const void* b, T* c, void*,
                                                                const void*) {
    if (swapped) std::swap(a, b);
    const T* x = static_cast<const T*>(a);
    const W* w = static_cast<const W*>(b);
    parallel_for(plan.threads, plan.outer.count() * blocks, grain, [&](std::int64_t begin, std::int64_t finish) {
      while (begin < finish) {
        const std::int64_t block = begin % blocks;
        const std::int64_t count = std::min({finish - begin, blocks - block, most_blocks});
        const std::int64_t first = block * block_columns;
        auto at = plan.outer.offsets(begin / blocks, plan.outer.rank());
        for (std::size_t i = 0; i < 3; ++i) at[i] += plan.offsets[i] + first * plan.n_strides[i];
        for (std::int64_t row = 0; row < plan.m; row += rows_together<T>) {
          const std::int64_t rows = std::min<std::int64_t>(rows_together<T>, plan.m - row);
          multiply[rows - 1](
              {x + at[0] + row * plan.m_strides[0], at_element(w, at[1]), c + at[2] + row * plan.m_strides[2], plan.k,
               std::min(plan.n - first, count * block_columns), plan.m_strides[0], plan.k_strides[0], plan.k_strides[1],
               plan.n_strides[1], plan.m_strides[2], plan.n_strides[2], plan.accumulate, static_cast<int>(rows)});
        }
        begin += count;
      }
    });
  }};
}
}  // namespace

bool columns_have_blocks(const GemmPlan& plan) {
  if (!is_block(plan.narrow[1].value_or(Dtype::float32))) return true;
  const auto whole = [block = block_of(*plan.narrow[1])](std::int64_t elements) { return elements % block == 0; };
  return plan.k_strides[1] == 1 && whole(plan.k) && whole(plan.n_strides[1]) && whole(plan.offsets[1]) &&
         std::all_of(plan.outer.strides[1].begin(), plan.outer.strides[1].end(), whole);
}

bool rows_suit(const GemmPlan& given) {
  const GemmPlan plan = with_few_rows(given);
  constexpr std::int64_t least_columns = 16, least_terms = 4, least_elements = 1024;
  return plan.m <= rows_together<float> && !plan.narrow[0] && plan.n >= least_columns && plan.k >= least_terms &&
         plan.n * plan.k >= least_elements && plan.sums.rank() == 0 && (terms_run(plan) || matrix_columns_run(plan)) &&
         columns_have_blocks(plan);
}

template <class T>
MatrixProducts<T> make_rows(const GemmPlan& given) {
  const GemmPlan plan = with_few_rows(given);
  const bool swapped = given.m > given.n;
  if constexpr (std::is_same_v<T, float>) {
    if (plan.narrow[1] == Dtype::bfloat16) return made<float, bfloat16>(plan, swapped);
    if (plan.narrow[1] == Dtype::int8) return made<float, std::int8_t>(plan, swapped);
    if (plan.narrow[1] == Dtype::float16) return made<float, float16>(plan, swapped);
    if (plan.narrow[1])
      return with_block(*plan.narrow[1], [&](auto block) { return made<float, decltype(block)>(plan, swapped); });
  }
  return made<T, T>(plan, swapped);
}
template MatrixProducts<float> make_rows<float>(const GemmPlan&);
template MatrixProducts<double> make_rows<double>(const GemmPlan&);

}  // namespace xtape
