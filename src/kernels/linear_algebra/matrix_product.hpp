/// Multiples of rows, and products of parts of a matrix, for blocked factorisations: their sizes change from step to
/// step.
#pragma once

#include <cstdint>

#include "kernels/math/lanes.hpp"

namespace xtape {

/// Elements that are only read: element (i, j) is data[i * row + j * column]. Strides may be negative.
template <class T>
struct View {
  const T* data;
  std::int64_t row, column;

  const T& operator()(std::int64_t i, std::int64_t j) const { return data[i * row + j * column]; }
  View from(std::int64_t i, std::int64_t j) const { return {data + i * row + j * column, row, column}; }
  View transposed() const { return {data, column, row}; }
};

/// y -= factor * x.
template <class T>
void subtract_multiple(T* y, T factor, const T* x, std::int64_t n) {
#pragma omp simd
  for (std::int64_t j = 0; j < n; ++j) y[j] = fused(-factor, x[j], y[j]);
}

/// A product [rows, terms] [terms, columns].
struct ProductSizes {
  std::int64_t rows, columns, terms;
};

/// c += sign * a b, on the calling thread. `sign` is 1 or -1. The rows of c are contiguous, c_row elements apart. If
/// `upper`, only the upper triangle of c is complete. An element of c has the same bits on all processors: a chain of
/// fused multiply-adds for each 256 terms.
template <class T>
void add_product(const ProductSizes& sizes, T sign, const View<T>& a, const View<T>& b, T* c, std::int64_t c_row,
                 bool upper = false);
extern template void add_product(const ProductSizes&, float, const View<float>&, const View<float>&, float*,
                                 std::int64_t, bool);
extern template void add_product(const ProductSizes&, double, const View<double>&, const View<double>&, double*,
                                 std::int64_t, bool);

}  // namespace xtape
