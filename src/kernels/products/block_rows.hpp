/// Products of few rows by a matrix whose columns consist of blocks. Each block is decoded once for up to four rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "kernels/math/block_lanes.hpp"
#include "kernels/products/gemm.hpp"

namespace xtape {

// Where code is to be small, rows are computed one after the other, instead of by a function for each number of rows.
#ifdef __OPTIMIZE_SIZE__
constexpr bool small_code = true;
#else
constexpr bool small_code = false;
#endif

/// `columns` columns of a product: x [rows, terms], w [terms, columns], c [rows, columns]. W is the element type of the
/// matrix, or the struct of its blocks. Strides count elements.
template <class T, class W>
struct RowColumns {
  const T* x;
  const W* w;
  T* c;
  std::int64_t terms, columns;
  std::int64_t x_row, x_term, w_term, w_column, c_row, c_column;
  bool add;
  int rows = 1;  ///< Of a matrix in blocks. For other types, functions know their rows.

  /// The rows from `i` on.
  RowColumns row(int i) const {
    RowColumns rest = *this;
    rest.x += i * x_row;
    rest.c += i * c_row;
    rest.rows -= i;
    return rest;
  }
};

/// Prefetches the cache line `elements` after an element.
template <class W>
void will_read_element(const W* element, std::int64_t elements) {
  will_read(element, elements * static_cast<std::int64_t>(sizeof(W)));
}

/// The sums of several columns and rows over terms in blocks. Adds the terms in the order in which multiply_columns
/// adds them. Decodes each block once for all rows. A sum waits for the addition before it, so several columns take
/// turns.
template <class W, int rows, int columns>
class BlockSums {
 public:
  /// The last row stands for those that there are not.
  explicit BlockSums(const RowColumns<float, W>& product) {
    for (int i = 0; i < rows; ++i) x_[i] = product.x + std::min(i, product.rows - 1) * product.x_row;
    for (auto& of_column : sums_)
      for (auto& sum : of_column) sum.fill(xsimd::batch<float>(0.0F));
  }
  /// Adds the terms of one block of each column.
  [[gnu::always_inline]] void add(const W* const (&w)[columns], std::int64_t block) {
    const std::int64_t first = block * block_numbers<W>;
    [&]<std::size_t... j>(std::index_sequence<j...>) __attribute__((always_inline)) {
      const BlockReader<W> readers[] = {BlockReader<W>(w[j][block])...};
      for (std::int64_t n = 0; n < block_pairs<W>; ++n) (add_pair<j>(readers[j], n, first), ...);
    }
    (std::make_index_sequence<columns>{});
  }
  float sum(int row, int column) const { return add_line<float>(sums_[column][row]); }

 private:
  template <std::size_t j>
  [[gnu::always_inline]] void add_pair(const BlockReader<W>& reader, std::int64_t n, std::int64_t first) {
    add_group<0, j>(reader, n, first);
    if constexpr (group_numbers < block_numbers<W>) add_group<1, j>(reader, n, first);
  }
  template <int odd, std::size_t j>
  [[gnu::always_inline]] void add_group(const BlockReader<W>& reader, std::int64_t n, std::int64_t first) {
    constexpr std::int64_t width = xsimd::batch<float>::size;
    reader.template group<odd>(
        n, [&](auto index, const auto& matrix) __attribute__((always_inline)) {
          const std::int64_t term = first + (2 * n + odd) * group_numbers + index() * width;
#pragma GCC unroll 4
          for (int i = 0; i < rows; ++i) {
            auto& sum = sums_[j][i][index() % std::tuple_size_v<Line<float>>];
            sum = fused<float>(xsimd::batch<float>::load_unaligned(x_[i] + term), matrix, sum);
          }
        });
  }

  const float* x_[rows];
  Line<float> sums_[columns][rows];
};

/// Computes the columns of at most `rows` rows if the terms of a column are whole blocks.
template <class W, int rows>
[[gnu::noinline]] void multiply_blocks(const RowColumns<float, W>& p) {
  // Sums in half of the registers.
  constexpr int registers = sizeof(xsimd::batch<float>) == 64 ? 16 : 8;
  constexpr int columns = std::clamp(registers / rows / static_cast<int>(std::tuple_size_v<Line<float>>), 1, 4);
  constexpr std::int64_t cache_line = 64, together = cache_line / std::min<std::int64_t>(cache_line, sizeof(W));
  const std::int64_t blocks = p.terms / block_numbers<W>, column = p.w_column / block_numbers<W>;
  for (std::int64_t first = 0; first < p.columns; first += columns) {
    const W* w[columns];  // the last columns again, if there are no more
    for (int j = 0; j < columns; ++j) w[j] = p.w + std::min(first + j, p.columns - 1) * column;
    BlockSums<W, rows, columns> sums(p);
    for (std::int64_t b = 0; b < blocks; ++b) {
      if (b % together == 0)
        for (int j = 0; j < columns; ++j)
          for (std::int64_t byte = 0; byte < static_cast<std::int64_t>(sizeof(W)); byte += cache_line)
            will_read(w[j], (columns * column + b) * static_cast<std::int64_t>(sizeof(W)) + byte);
      sums.add(w, b);
    }
    for (int j = 0; j < columns && first + j < p.columns; ++j)
      for (int i = 0; i < std::min(rows, p.rows); ++i) {
        float& to = p.c[i * p.c_row + (first + j) * p.c_column];
        to = p.add ? to + sums.sum(i, j) : sums.sum(i, j);
      }
  }
}

/// Computes four rows together, because each number of rows is a function of its own for each format.
template <class W>
void by_blocks(const RowColumns<float, W>& p) {
  constexpr int together = small_code ? 1 : 4;
  for (int row = 0; row < p.rows; row += together)
    if (small_code || row + 1 == p.rows)
      multiply_blocks<W, 1>(p.row(row));
    else
      multiply_blocks<W, together>(p.row(row));
}

}  // namespace xtape
