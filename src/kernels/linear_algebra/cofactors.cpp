// det_grad and det_grad_grad: the cofactors of matrices that may be singular.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "kernels/elements/scalar.hpp"
#include "kernels/linear_algebra/matrix_batches.hpp"
#include "kernels/linear_algebra/triangles.hpp"

namespace xtape {

namespace {
/// A product that neither overflows nor underflows: fraction * 2^exponent.
struct WideProduct {
  double fraction = 1;
  std::int64_t exponent = 0;

  void multiply(double x) {
    int of_x = 0, of_product = 0;
    fraction = std::frexp(fraction * std::frexp(x, &of_x), &of_product);
    exponent += of_x + of_product;
  }
  void divide(double x) {
    int of_x = 0, of_quotient = 0;
    fraction = std::frexp(fraction / std::frexp(x, &of_x), &of_quotient);
    exponent += of_quotient - of_x;
  }
  double value() const {
    return std::ldexp(fraction, static_cast<int>(std::clamp<std::int64_t>(exponent, -4000, 4000)));
  }
};

/// The factors of a matrix [n, n]: element (i, j) of L D U is element (rows[i], columns[j]) of the matrix. L is unit
/// lower triangular, U is unit upper triangular, and D is diagonal. `ldu` holds all three. If the matrix has rank r,
/// all elements of D after the first r are 0, apart from rounding errors.
template <class T>
struct PivotedFactors {
  T* ldu;
  std::int64_t *rows, *columns;
  std::int64_t n;
  T* scratch;                ///< RowPivoting::panel_size(n) elements.
  WideProduct product = {};  ///< Of the pivots that are not 0, with the sign of the permutations.
  int zeros = 0;             ///< The number of pivots that are 0.

  T pivot(std::int64_t k) const { return ldu[k * n + k]; }
  /// Moves the largest element of the rows and columns from k on to (k, k).
  void bring_largest(std::int64_t k) {
    std::int64_t row = k, column = k;
    for (std::int64_t i = k; i < n; ++i)
      for (std::int64_t j = k; j < n; ++j)
        if (std::abs(ldu[i * n + j]) > std::abs(ldu[row * n + column])) row = i, column = j;
    if (row != k) {
      std::swap_ranges(ldu + k * n, ldu + (k + 1) * n, ldu + row * n);
      std::swap(rows[k], rows[row]);
      product.multiply(-1);
    }
    if (column != k) {
      for (std::int64_t i = 0; i < n; ++i) std::swap(ldu[i * n + k], ldu[i * n + column]);
      std::swap(columns[k], columns[column]);
      product.multiply(-1);
    }
  }
  void compute(const T* matrix) {
    std::copy_n(matrix, n * n, ldu);
    if (pivot_rows()) return;
    std::copy_n(matrix, n * n, ldu);
    pivot_completely();
  }
  /// Replaces the matrix in `ldu` by its factors, with pivots that are the largest of their column. Returns false,
  /// after an unspecified change, if a pivot is so small that U would be inexact: the matrix may be singular.
  bool pivot_rows() {
    RowPivoting<T> lu{ldu, n, rows, scratch};
    lu.factor();
    T least = std::numeric_limits<T>::infinity(), greatest = 0;
    for (std::int64_t k = 0; k < n; ++k) {
      least = std::min(least, std::abs(pivot(k)));
      greatest = std::max(greatest, std::abs(pivot(k)));
    }
    if (!(least > 0 && least >= std::sqrt(std::numeric_limits<T>::epsilon()) * greatest)) return false;
    std::iota(columns, columns + n, 0);
    product.multiply(static_cast<double>(lu.sign));
    for (std::int64_t k = 0; k < n; ++k) {
      product.multiply(static_cast<double>(pivot(k)));
      for (std::int64_t j = k + 1; j < n; ++j) ldu[k * n + j] /= pivot(k);
    }
    return true;
  }
  /// Replaces the matrix in `ldu` by its factors, with pivots that are the largest of all that are left. This takes
  /// several times as long for large matrices.
  void pivot_completely() {
    std::iota(rows, rows + n, 0);
    std::iota(columns, columns + n, 0);
    for (std::int64_t k = 0; k < n; ++k) {
      bring_largest(k);
      const T divisor = pivot(k);
      if (divisor == 0) {
        zeros = static_cast<int>(n - k);
        return;
      }
      product.multiply(static_cast<double>(divisor));
      for (std::int64_t i = k + 1; i < n; ++i) {
        const T part = ldu[i * n + k] /= divisor;
        for (std::int64_t j = k + 1; j < n; ++j) ldu[i * n + j] -= part * ldu[k * n + j];
      }
      for (std::int64_t j = k + 1; j < n; ++j) ldu[k * n + j] /= divisor;
    }
  }
  /// The product of all pivots except those with these numbers, with the sign of the permutations.
  T product_without(std::int64_t i, std::int64_t j) const {
    int left = zeros;
    WideProduct rest = product;
    const auto leave_out = [&](T x) { x == 0 ? void(--left) : rest.divide(static_cast<double>(x)); };
    leave_out(pivot(i));
    if (j != i) leave_out(pivot(j));
    return left > 0 ? T{0} : static_cast<T>(rest.value());
  }
  /// Replaces X by L⁻¹ X or, if `transposed`, by L⁻ᵀ X.
  void solve_left(bool transposed, T* x) const {
    const View<T> l{ldu, n, 1};
    solve_triangle(transposed ? l.transposed() : l, n, transposed, true, x, n, n);
  }
  /// Replaces X by X U⁻¹ or, if `transposed`, by X U⁻ᵀ.
  void solve_right(bool transposed, T* x) const {
    const View<T> u{ldu, n, 1};
    transpose(x, n);
    solve_triangle(transposed ? u : u.transposed(), n, transposed, true, x, n, n);
    transpose(x, n);
  }
};

/// Replaces M by the derivative, in the direction M, of the cofactors of the diagonal matrix D. They are polynomials,
/// so that no quotient of two zeros arises.
template <class T>
void differentiate_cofactors(const PivotedFactors<T>& factors, T* m, T* diagonal) {
  const std::int64_t n = factors.n;
  for (std::int64_t i = 0; i < n; ++i) diagonal[i] = std::exchange(m[i * n + i], T{0});
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = i + 1; j < n; ++j) {
      const T rest = factors.product_without(i, j), upper = m[i * n + j];
      m[i * n + i] += rest * diagonal[j];
      m[j * n + j] += rest * diagonal[i];
      m[i * n + j] = -rest * m[j * n + i];
      m[j * n + i] = -rest * upper;
    }
}

/// The cofactors of a matrix, or their derivative in the direction of a second matrix. With the factors as constants,
/// the matrix is a linear image of D. Its cofactors are the image of those of D under the inverse transposed map.
template <bool derivative>
Kernel make_cofactors(const KernelForm& form) {
  const Matrices matrices(form.shape(0));
  const std::int64_t n = matrices.rows, size = matrices.size();
  return with_floating(form.dtype(0), [&](auto scalar) {
    using T = decltype(scalar);
    return each_matrix<T>(
        matrices, {2 * size + n + RowPivoting<T>::panel_size(n), 0, 2 * n}, form, false, "",
        [=](const KernelArguments& arguments, std::int64_t number, const Place<T>& place) {
          const T* a = in<T>(arguments, 0) + number * size;
          T* y = out<T>(arguments, 0) + number * size;
          if (!all_finite(a, size)) {
            fill_nan(y, size);
            return true;
          }
          T *m = place.elements + size, *diagonal = m + size;
          PivotedFactors<T> factors{place.elements, place.integers, place.integers + n, n, diagonal + n};
          factors.compute(a);
          std::fill_n(m, size, T{0});
          const auto at = [&](std::int64_t i, std::int64_t j) { return factors.rows[i] * n + factors.columns[j]; };
          if constexpr (derivative) {
            const T* direction = in<T>(arguments, 1) + number * size;
            by_tiles(n, n, [&](std::int64_t i, std::int64_t j) { m[i * n + j] = direction[at(i, j)]; });
            factors.solve_left(false, m);
            factors.solve_right(false, m);
            differentiate_cofactors(factors, m, diagonal);
          } else {
            for (std::int64_t i = 0; i < n; ++i) m[i * n + i] = factors.product_without(i, i);
          }
          factors.solve_left(true, m);
          factors.solve_right(true, m);
          by_tiles(n, n, [&](std::int64_t i, std::int64_t j) { y[at(i, j)] = m[i * n + j]; });
          return true;
        });
  });
}
}  // namespace

KernelList list_cofactors() {
  return {{"det_grad", make_cofactors<false>}, {"det_grad_grad", make_cofactors<true>}};
}

}  // namespace xtape
