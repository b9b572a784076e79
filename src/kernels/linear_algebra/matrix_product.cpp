#include "kernels/linear_algebra/matrix_product.hpp"

#include <algorithm>

#include "base/arrays/lengths.hpp"
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
}  // namespace

template <class T>
void add_product(const ProductSizes& sizes, T sign, const View<T>& a, const View<T>& b, T* c, std::int64_t c_row,
                 bool upper) {
  using F = Plain<T>;
  constexpr std::int64_t width = panel_width<F>;
  alignas(64) T panel[most_terms * width];
  const Columns<F> right{{panel}, nullptr, nullptr};
  for (std::int64_t k = 0; k < sizes.terms; k += most_terms)
    for (std::int64_t j = 0; j < sizes.columns; j += width) {
      const std::int64_t terms = std::min(most_terms, sizes.terms - k), columns = std::min(width, sizes.columns - j);
      const std::int64_t rows = upper ? std::min(sizes.rows, j + columns) : sizes.rows;
      pack(b.from(k, j), sign, terms, columns, panel);
      const auto& go = columns > width / row_registers ? multiply_rows<F, row_registers> : multiply_rows<F, 1>;
      const std::int64_t bands = ceiling(rows, tile_rows);  // of equal heights
      for (std::int64_t band = 0; band < bands; ++band) {
        const std::int64_t top = rows * band / bands, end = rows * (band + 1) / bands;
        const View<T> left = a.from(top, k);
        multiply_tile<F>(go[end - top - 1], end - top, columns, terms, left.data, left.row, left.column, right,
                         c + top * c_row + j, c_row, true);
      }
    }
}
template void add_product(const ProductSizes&, float, const View<float>&, const View<float>&, float*, std::int64_t,
                          bool);
template void add_product(const ProductSizes&, double, const View<double>&, const View<double>&, double*, std::int64_t,
                          bool);

}  // namespace xtape
