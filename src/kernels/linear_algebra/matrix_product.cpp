#include "kernels/linear_algebra/matrix_product.hpp"

#include <algorithm>

#include "base/memory/lengths.hpp"
#include "kernels/products/tile_loops.hpp"

namespace xtape {

namespace {
constexpr std::int64_t most_terms = 256;  // of a panel, which then fits the first-level cache

/// Packs `columns` columns of b, with zeros for those that a panel lacks.
template <class T>
void pack(const View<T>& b, T sign, std::int64_t terms, std::int64_t columns, T* panel) {
  constexpr std::int64_t width = panel_width<Plain<T>>;
  if (columns < width) std::fill_n(panel, terms * width, T{0});
  if (b.column == 1)
    for (std::int64_t k = 0; k < terms; ++k)
#pragma omp simd
      for (std::int64_t j = 0; j < columns; ++j) panel[k * width + j] = sign * b.data[k * b.row + j];
  else
    for (std::int64_t j = 0; j < columns; ++j)
      for (std::int64_t k = 0; k < terms; ++k) panel[k * width + j] = sign * b(k, j);
}

/// Adds the product of `rows` rows of a, at most tile_rows, and a panel to `columns` columns of c.
template <class T>
void add_tile(std::int64_t rows, std::int64_t columns, std::int64_t terms, const View<T>& a, const T* panel, T* c,
              std::int64_t c_row) {
  using F = Plain<T>;
  constexpr std::int64_t width = panel_width<F>, lanes = width / row_registers;
  const auto which = static_cast<std::size_t>(rows - 1);
  const Multiply<F> multiply = columns > lanes ? multiply_rows<F, row_registers>[which] : multiply_rows<F, 1>[which];
  const Columns<F> right{{panel}, nullptr, nullptr};
  if (columns == lanes || columns == width) {
    multiply(terms, a.data, a.row, a.column, right, c, c_row, true);
    return;
  }
  T whole[tile_rows * width];
  multiply(terms, a.data, a.row, a.column, right, whole, width, false);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) c[i * c_row + j] += whole[i * width + j];
}
}  // namespace

template <class T>
void add_product(const ProductSizes& sizes, T sign, const View<T>& a, const View<T>& b, T* c, std::int64_t c_row,
                 bool upper) {
  constexpr std::int64_t width = panel_width<Plain<T>>;
  alignas(64) T panel[most_terms * width];
  for (std::int64_t k = 0; k < sizes.terms; k += most_terms)
    for (std::int64_t j = 0; j < sizes.columns; j += width) {
      const std::int64_t terms = std::min(most_terms, sizes.terms - k), columns = std::min(width, sizes.columns - j);
      const std::int64_t rows = upper ? std::min(sizes.rows, j + columns) : sizes.rows;
      pack(b.from(k, j), sign, terms, columns, panel);
      const std::int64_t bands = ceiling(rows, tile_rows);  // of equal heights
      for (std::int64_t band = 0; band < bands; ++band) {
        const std::int64_t top = rows * band / bands, end = rows * (band + 1) / bands;
        add_tile(end - top, columns, terms, a.from(top, k), panel, c + top * c_row + j, c_row);
      }
    }
}
template void add_product(const ProductSizes&, float, const View<float>&, const View<float>&, float*, std::int64_t,
                          bool);
template void add_product(const ProductSizes&, double, const View<double>&, const View<double>&, double*, std::int64_t,
                          bool);

}  // namespace xtape
