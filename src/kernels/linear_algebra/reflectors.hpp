/// Householder reflections H = I - tau v vᵀ, whose vectors are rows in memory, and products of many of them in the
/// compact form I - V T Vᵀ (Schreiber and Van Loan, 1989, A storage-efficient WY representation).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/linear_algebra/matrix_product.hpp"
#include "kernels/math/lanes.hpp"

namespace xtape {

/// The number of reflections that are applied together.
inline constexpr std::int64_t reflector_block = 32;

template <class T>
T dot(const T* x, const T* y, std::int64_t n) {
  return static_cast<T>(
      sum_of_lanes<T>(n, [=](std::int64_t i, const auto& lanes) { return lanes.load(x + i) * lanes.load(y + i); }));
}

/// The root of x² + y², without overflow of the squares.
inline double hypotenuse(double x, double y) {
  const double squares = fused(x, x, y * y);
  if (squares > 0x1p-900 && squares < 0x1p900) return std::sqrt(squares);
  const double large = std::max(std::abs(x), std::abs(y)), small = std::min(std::abs(x), std::abs(y));
  const double quotient = large > 0 ? small / large : 0;
  return large * std::sqrt(fused(quotient, quotient, 1.0));
}

/// The root of the sum of squares, without overflow of the squares.
template <class T>
T length_of(const T* x, std::int64_t n) {
  constexpr T least = std::numeric_limits<T>::min() / std::numeric_limits<T>::epsilon(), most = 1 / least;
  const T squares = dot(x, x, n);
  if (squares > least && squares < most) return std::sqrt(squares);
  T largest = 0;
  for (std::int64_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(x[i]));
  double sum = 0;
  for (std::int64_t i = 0; i < n && largest > 0; ++i) {
    const double part = static_cast<double>(x[i] / largest);
    sum = fused(part, part, sum);
  }
  return largest * static_cast<T>(std::sqrt(sum));
}

/// Makes the reflection with v = (1, rest) that maps (first, rest) to (beta, 0). Replaces `first` by beta, whose sign
/// is opposite, and `rest` by that of v. Returns tau, which is 0 if `rest` is zero (LAPACK's larfg).
template <class T>
T reflect(T& first, T* rest, std::int64_t n) {
  using Limits = std::numeric_limits<T>;
  constexpr T least = Limits::min() / Limits::epsilon(), up = 1 / (Limits::epsilon() * Limits::epsilon());
  const T length = length_of(rest, n);
  if (length == 0) return 0;
  const T size = static_cast<T>(hypotenuse(static_cast<double>(first), static_cast<double>(length)));
  if (size < least) {  // subnormal numbers have few digits
    for (std::int64_t i = 0; i < n; ++i) rest[i] *= up;
    first *= up;
    const T tau = reflect(first, rest, n);
    first /= up;
    return tau;
  }
  const T beta = -std::copysign(size, first), divisor = first - beta, tau = (beta - first) / beta;
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) rest[i] /= divisor;
  first = beta;
  return tau;
}

/// Reflections of rows of `length` elements. v(j, i) is 0 for i < j, and 1 for i == j.
template <class T>
struct Reflectors {
  View<T> v;  ///< With contiguous rows.
  const T* tau;
  std::int64_t count, length;

  /// The reflections from `first` on, of the elements from `first` on.
  Reflectors from(std::int64_t first, std::int64_t some) const {
    return {v.from(first, first), tau + first, some, length - first};
  }
  static std::int64_t scratch_size(std::int64_t rows) { return 2 * reflector_block * (reflector_block + rows); }

  /// Multiplies rows of C [rows, length] from the right by H_0 H_1 …, or if `reversed` by … H_1 H_0. There are at most
  /// reflector_block reflections.
  void apply(bool reversed, T* c, std::int64_t c_row, std::int64_t rows, T* scratch) const {
    if (rows == 0) return;
    constexpr std::int64_t b = reflector_block;
    T *t = scratch, *products = t + b * b, *x = products + b * b, *y = x + b * rows;
    std::fill(scratch, y + b * rows, T{0});
    add_product<T>({count, count, length}, 1, v, v.transposed(), products, b);
    for (std::int64_t j = 0; j < count; ++j) {
      for (std::int64_t i = 0; i < j; ++i) {
        T sum = 0;
        for (std::int64_t k = i; k < j; ++k) sum = fused(t[i * b + k], products[k * b + j], sum);
        t[i * b + j] = -tau[j] * sum;
      }
      t[j * b + j] = tau[j];
    }
    const View<T> triangle{t, b, 1};
    add_product<T>({rows, count, length}, 1, {c, c_row, 1}, v.transposed(), x, b);
    add_product<T>({rows, count, count}, 1, {x, b, 1}, reversed ? triangle.transposed() : triangle, y, b);
    add_product<T>({rows, length, count}, -1, {y, b, 1}, v, c, c_row);
  }

  /// Writes row j of Z [count, length], whose rows are z_row apart: column j of H_0 H_1 ….
  void form(T* z, std::int64_t z_row, T* scratch) const {
    for (std::int64_t j = 0; j < count; ++j) {
      std::fill_n(z + j * z_row, length, T{0});
      z[j * z_row + j] = 1;
    }
    for (std::int64_t end = count; end > 0;) {
      const std::int64_t first = (end - 1) / reflector_block * reflector_block;
      from(first, end - first).apply(true, z + first * z_row + first, z_row, count - first, scratch);
      end = first;
    }
  }
};

/// Factorises A [m, n] = Q R. `columns` has the columns of A as rows. Writes R [k, n] for k = min(m, n), and replaces
/// the first k columns by the vectors of the reflections whose product is Q (LAPACK's geqrf).
template <class T>
void factor_by_reflections(T* columns, std::int64_t m, std::int64_t n, T* tau, T* r, T* scratch) {
  const std::int64_t k = std::min(m, n);
  const auto write_column = [&](std::int64_t j) {
    for (std::int64_t i = 0; i < k; ++i) r[i * n + j] = i <= j ? columns[j * m + i] : T{0};
  };
  for (std::int64_t first = 0; first < k; first += reflector_block) {
    const std::int64_t end = std::min(k, first + reflector_block);
    for (std::int64_t j = first; j < end; ++j) {
      T* v = columns + j * m;
      tau[j] = reflect(v[j], v + j + 1, m - j - 1);
      write_column(j);
      std::fill_n(v, j, T{0});
      v[j] = 1;
      for (std::int64_t c = j + 1; c < end; ++c) {
        T* x = columns + c * m;
        subtract_multiple(x + j, tau[j] * dot(v + j, x + j, m - j), v + j, m - j);
      }
    }
    const Reflectors<T> all{{columns, m, 1}, tau, k, m};
    all.from(first, end - first).apply(false, columns + end * m + first, m, n - end, scratch);
  }
  for (std::int64_t j = k; j < n; ++j) write_column(j);
}

}  // namespace xtape
