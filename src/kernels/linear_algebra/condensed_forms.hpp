/// Reductions of a matrix to one of two diagonals by reflections. Each step applies the update of the step before and
/// the product with the new vector in the same pass, because the time of reductions is that of reading the matrix
/// (Howell et al., 2008, Cache efficient bidiagonalization using BLAS 2.5 operators).
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/linear_algebra/reflectors.hpp"
#include "kernels/math/lanes.hpp"

namespace xtape {

/// row -= a x + b y, then z += c row.
template <class T>
void update_row(T* row, T a, const T* x, T b, const T* y, T c, T* z, std::int64_t n) {
  using Batch = xsimd::batch<T>;
  for_lanes<T>(n, [=](std::int64_t i, const auto& lanes) {
    const Batch updated =
        fused_away(Batch(a), lanes.load(x + i), fused_away(Batch(b), lanes.load(y + i), lanes.load(row + i)));
    lanes.store(row + i, updated);
    lanes.store(z + i, fused(Batch(c), updated, lanes.load(z + i)));
  });
}

/// Reduces a symmetric A [n, n], of which it reads the upper triangle, to the diagonals d [n] and e [n - 1] (LAPACK's
/// sytrd). Row j of A becomes the vector of reflection j, of the elements from j + 1 on, and zeros. `w` and `p` are
/// scratch of n elements.
template <class T>
void reduce_to_tridiagonal(T* a, std::int64_t n, double* d, double* e, T* tau, T* w, T* p) {
  std::fill_n(w, n, T{0});
  for (std::int64_t j = 0; j < n; ++j) {
    T *row = a + j * n, *last = j > 0 ? row - n : row;  // A is to become A - last wᵀ - w lastᵀ
    const T of_last = last[j], of_w = w[j];
    for (std::int64_t i = j; i < n; ++i) row[i] = fused(-of_last, w[i], fused(-of_w, last[i], row[i]));
    d[j] = static_cast<double>(row[j]);
    const std::int64_t next = j + 1, rest = n - next;
    if (rest == 0) return;
    tau[j] = reflect(row[next], row + next + 1, rest - 1);
    e[j] = static_cast<double>(row[next]);
    std::fill_n(row, next, T{0});
    row[next] = 1;
    std::fill_n(p + next, rest, T{0});
    for (std::int64_t r = next; r < n; ++r) {  // p = A v for the vector v in `row`
      T* x = a + r * n;
      const T before = p[r];
      update_row(x + r, last[r], w + r, w[r], last + r, row[r], p + r, n - r);
      p[r] = before + dot(x + r, row + r, n - r);
    }
    for (std::int64_t i = next; i < n; ++i) p[i] *= tau[j];
    const T half = tau[j] * dot(p + next, row + next, rest) / 2;
    for (std::int64_t i = next; i < n; ++i) w[i] = fused(-half, row[i], p[i]);
  }
}

/// Reduces A [m, n] with m >= n to an upper bidiagonal matrix of d [n] and e [n - 1] (LAPACK's gebrd). Row j of A
/// becomes the vector of the reflection j of rows, of the elements from j + 1 on, and row j of U [n, m] that of
/// columns, of the elements from j on. Before them are zeros. `x` [m], `y` [n] and `p` [n] are scratch.
template <class T>
void reduce_to_bidiagonal(T* a, T* u, std::int64_t m, std::int64_t n, double* d, double* e, T* tau_u, T* tau_v, T* x,
                          T* y, T* p) {
  std::fill_n(u, m, T{0});
  std::fill_n(x, m, T{0});
  std::fill_n(y, n, T{0});
  for (std::int64_t j = 0; j < n; ++j) {
    T *row = a + j * n, *column = u + j * m;
    const T *last_v = j > 0 ? row - n : row, *last_u = j > 0 ? column - m : column;  // A - last_u yᵀ - x last_vᵀ
    const T of_y = y[j], of_v = last_v[j];
    for (std::int64_t r = j; r < m; ++r) column[r] = fused(-last_u[r], of_y, fused(-x[r], of_v, a[r * n + j]));
    tau_u[j] = reflect(column[j], column + j + 1, m - j - 1);
    d[j] = static_cast<double>(column[j]);
    std::fill_n(column, j, T{0});
    column[j] = 1;
    const std::int64_t next = j + 1, rest = n - next;
    if (rest == 0) return;
    std::fill_n(p + next, rest, T{0});
    for (std::int64_t r = j; r < m; ++r)
      update_row(a + r * n + next, last_u[r], y + next, x[r], last_v + next, column[r], p + next, rest);
    for (std::int64_t i = next; i < n; ++i) {
      y[i] = tau_u[j] * p[i];
      row[i] -= y[i];
    }
    tau_v[j] = reflect(row[next], row + next + 1, rest - 1);
    e[j] = static_cast<double>(row[next]);
    std::fill_n(row, next, T{0});
    row[next] = 1;
    const T along = dot(y + next, row + next, rest);
    for (std::int64_t r = next; r < m; ++r)
      x[r] = tau_v[j] * fused(-column[r], along, dot(a + r * n + next, row + next, rest));
  }
}

}  // namespace xtape
