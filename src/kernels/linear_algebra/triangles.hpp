/// Triangular systems, Cholesky and LU factors by recursion on halves, which makes nearly all of their work products of
/// large blocks at every level of the cache (Toledo, 1997, Locality of reference in LU decomposition with partial
/// pivoting; Gustavson, 1997). Bits depend on sizes only.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "base/arrays/lengths.hpp"
#include "kernels/linear_algebra/matrix_batches.hpp"
#include "kernels/linear_algebra/matrix_product.hpp"

namespace xtape {

/// The rows and columns of a block that recursion does not divide: a block of 16 rows is 128 bytes wide in float64.
inline constexpr std::int64_t least_block = 16;

/// About half of n, a multiple of least_block.
inline std::int64_t half_of(std::int64_t n) {
  return ceiling(n / 2, least_block) * least_block;
}

/// Replaces B [n, columns], whose rows are b_row apart, by X with A X = B, for a lower triangular A [n, n]. If `unit`,
/// the diagonal counts as 1.
template <class T>
void solve_lower(const View<T>& a, std::int64_t n, bool unit, T* b, std::int64_t b_row, std::int64_t columns) {
  if (n > least_block) {
    const std::int64_t top = half_of(n);
    solve_lower(a, top, unit, b, b_row, columns);
    add_product<T>({n - top, columns, top}, -1, a.from(top, 0), {b, b_row, 1}, b + top * b_row, b_row);
    solve_lower(a.from(top, top), n - top, unit, b + top * b_row, b_row, columns);
    return;
  }
  constexpr std::int64_t most = 128;  // columns, so that a block stays in the first-level cache
  for (std::int64_t j = 0; j < columns; j += most)
    for (std::int64_t k = 0; k < n; ++k) {
      const std::int64_t width = std::min(most, columns - j);
      T* x = b + k * b_row + j;
      const T divisor = a(k, k);
      if (!unit)
#pragma omp simd
        for (std::int64_t i = 0; i < width; ++i) x[i] /= divisor;
      for (std::int64_t i = k + 1; i < n; ++i) subtract_multiple(b + i * b_row + j, a(i, k), x, width);
    }
}
/// The same for a triangle of either side. An upper triangle is a lower one with rows and columns in reverse order.
template <class T>
void solve_triangle(const View<T>& a, std::int64_t n, bool upper, bool unit, T* b, std::int64_t b_row,
                    std::int64_t columns) {
  if (upper)
    solve_lower<T>({a.data + (n - 1) * (a.row + a.column), -a.row, -a.column}, n, unit, b + (n - 1) * b_row, -b_row,
                   columns);
  else
    solve_lower(a, n, unit, b, b_row, columns);
}

/// Replaces A [n, n], whose rows are `row` apart, by L and its transpose with L Lᵀ = A. Returns false if A is not
/// positive definite. Rows are solved in the upper triangle, and products read those of the lower one.
template <class T>
bool factor_positive(T* a, std::int64_t row, std::int64_t n) {
  if (n > least_block) {
    const std::int64_t top = half_of(n), rest = n - top;
    T *right = a + top, *left = a + top * row, *below = left + top;
    if (!factor_positive(a, row, top)) return false;
    solve_lower<T>({a, row, 1}, top, false, right, row, rest);
    by_tiles(rest, top, [=](std::int64_t i, std::int64_t j) { left[i * row + j] = right[j * row + i]; });
    add_product<T>({rest, rest, top}, -1, {left, row, 1}, {right, row, 1}, below, row, true);
    return factor_positive(below, row, rest);
  }
  for (std::int64_t k = 0; k < n; ++k) {
    T* of_k = a + k * row;
    if (!(of_k[k] > 0)) return false;
    const T root = std::sqrt(of_k[k]);
    of_k[k] = root;
    for (std::int64_t j = k + 1; j < n; ++j) a[j * row + k] = of_k[j] /= root;
    for (std::int64_t i = k + 1; i < n; ++i) subtract_multiple(a + i * row + i, of_k[i], of_k + i, n - i);
  }
  return true;
}

/// Replaces A [n, n] by L and U with permuted rows: row i of L U is row permutation[i] of A. The pivot of a column is
/// the first of its largest elements.
template <class T>
struct RowPivoting {
  T* a;
  std::int64_t n;
  std::int64_t* permutation;
  T* panel;    ///< Scratch of panel_size(n) elements.
  T sign = 1;  ///< Of the permutation.
  bool singular = false;

  static std::int64_t panel_size(std::int64_t n) { return n * least_block; }

  void factor() {
    for (std::int64_t i = 0; i < n; ++i) permutation[i] = i;
    factor(0, n);
  }

 private:
  T* at(std::int64_t i, std::int64_t j) const { return a + i * n + j; }

  /// Factorises the columns from `first` to `end`, whose rows before `first` are finished.
  void factor(std::int64_t first, std::int64_t end) {
    if (end - first <= least_block) return factor_panel(first, end);
    const std::int64_t middle = first + half_of(end - first);
    factor(first, middle);
    solve_lower<T>({at(first, first), n, 1}, middle - first, true, at(first, middle), n, end - middle);
    add_product<T>({n - middle, end - middle, middle - first}, -1, {at(middle, first), n, 1}, {at(first, middle), n, 1},
                   at(middle, middle), n);
    factor(middle, end);
  }
  /// Factorises few columns, in a dense copy with rows of a fixed length.
  void factor_panel(std::int64_t first, std::int64_t end) {
    const std::int64_t width = end - first, rows = n - first;
    for (std::int64_t i = 0; i < rows; ++i)
      std::fill(std::copy_n(at(first + i, first), width, row_of(i)), row_of(i + 1), T{0});
    for (std::int64_t k = 0; k < width; ++k) {
      bring_largest(first, k);
      const T pivot = row_of(k)[k];
      if (pivot == 0) {
        singular = true;
        continue;
      }
      T rest[least_block];
      for (std::int64_t j = 0; j < least_block; ++j) rest[j] = j > k ? row_of(k)[j] : T{0};
      for (std::int64_t i = k + 1; i < rows; ++i) {
        T* x = row_of(i);
        const T part = x[k] / pivot;
#pragma omp simd
        for (std::int64_t j = 0; j < least_block; ++j) x[j] = fused(-part, rest[j], x[j]);
        x[k] = part;
      }
    }
    for (std::int64_t i = 0; i < rows; ++i) std::copy_n(row_of(i), width, at(first + i, first));
  }
  T* row_of(std::int64_t i) const {
    return panel + i * least_block;
  }
  /// Moves the row of the panel with the largest element of column k, from k on, to k. Moves the whole row of A, too.
  void bring_largest(std::int64_t first, std::int64_t k) {
    std::int64_t best = k;
    for (std::int64_t i = k + 1; i < n - first; ++i)
      if (std::abs(row_of(i)[k]) > std::abs(row_of(best)[k])) best = i;
    if (best == k) return;
    std::swap_ranges(row_of(k), row_of(k + 1), row_of(best));
    std::swap_ranges(at(first + k, 0), at(first + k + 1, 0), at(first + best, 0));
    std::swap(permutation[first + k], permutation[first + best]);
    sign = -sign;
  }
};

}  // namespace xtape
