#include "kernels/linear_algebra/linear_algebra.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "kernels/linear_algebra/lapack.hpp"
#include "kernels/linear_algebra/matrix_batches.hpp"

namespace xtape {

namespace {
template <class T>
Kernel make_cholesky(const KernelForm& form) {
  const Matrices matrices(form.shape(0));
  const int n = matrices.rows;
  return each_matrix<T>(matrices, {}, form, form.get<bool>("check"), "not positive definite",
                        [=](const KernelArguments& arguments, std::int64_t number, const Place<T>&) {
                          const std::int64_t size = matrices.size();
                          T* l = out<T>(arguments, 0) + number * size;
                          symmetrise(l, in<T>(arguments, 0) + number * size, n);
                          const bool finite = all_finite(l, size);
                          int info = 0;
                          // The upper triangle in column-major order is the lower triangle in row-major order.
                          if (finite && n > 0) Lapack<T>::potrf("U", &n, l, &n, &info, 1);
                          for (std::int64_t i = 0; i < n; ++i) {
                            if (!finite || info != 0) fill_nan(l + i * n, i + 1);
                            std::fill(l + i * n + i + 1, l + (i + 1) * n, T{0});
                          }
                          return info == 0;
                        });
}

/// The number of columns of the right-hand side that one task solves. This number does not depend on the number of
/// threads.
constexpr int columns_a_task = 256;

template <class T>
Kernel make_triangular_solve(const KernelForm& form) {
  const Matrices matrices(form.shape(1)), factors(form.shape(0));
  const int n = matrices.rows, columns = matrices.columns;
  const bool shared = factors.batch.size() < matrices.batch.size(), checks = form.get<bool>("check");
  const CBLAS_UPLO side = form.get<bool>("upper") ? CblasUpper : CblasLower;
  const CBLAS_TRANSPOSE operation = form.get<bool>("transposed") ? CblasTrans : CblasNoTrans;
  const CBLAS_DIAG diagonal = form.get<bool>("unit_diagonal") ? CblasUnit : CblasNonUnit;
  const std::int64_t grain = tasks_a_piece(static_cast<double>(n) * n * std::min(columns, columns_a_task));
  reserve_blas();
  return Kernel{[=, threads = form.threads](const KernelArguments& arguments) {
    if (n == 0) return;
    const T* a = in<T>(arguments, 0);
    for (std::int64_t k = 0; checks && diagonal == CblasNonUnit && k < factors.count; ++k)
      for (std::int64_t i = 0; i < n; ++i)
        if (a[k * factors.size() + i * n + i] == 0)
          throw Error(factors.name(k) + " is singular: element " + std::to_string(i) + " of its diagonal is 0");
    const T* b = in<T>(arguments, 1);
    T* x = out<T>(arguments, 0);
    const std::int64_t tasks = ceiling(columns, columns_a_task);
    parallel_for(threads, matrices.count * tasks, grain, [=](std::int64_t from, std::int64_t to) {
      for (std::int64_t task = from; task < to; ++task) {
        const std::int64_t number = task / tasks;
        const auto first = static_cast<int>(task % tasks * columns_a_task);
        const int width = std::min(columns_a_task, columns - first);
        const std::int64_t at = number * matrices.size() + first;
        for (std::int64_t i = 0; b != x && i < n; ++i) std::copy_n(b + at + i * columns, width, x + at + i * columns);
        Lapack<T>::trsm(CblasRowMajor, CblasLeft, side, operation, diagonal, n, width, 1,
                        a + (shared ? 0 : number * factors.size()), n, x + at, columns);
      }
    });
  }};
}

template <class T>
Kernel make_lu(const KernelForm& form) {
  const Matrices matrices(form.shape(0));
  const int n = matrices.rows;
  const std::int64_t size = matrices.size();
  return each_matrix<T>(matrices, {size, 0, n}, form, form.get<bool>("check"), "singular",
                        [=](const KernelArguments& arguments, std::int64_t number, const Place<T>& place) {
                          const T* a = in<T>(arguments, 0) + number * size;
                          T* lu = out<T>(arguments, 0) + number * size;
                          auto* permutation = out<std::int64_t>(arguments, 1) + number * n;
                          T& sign = out<T>(arguments, 2)[number];
                          for (int i = 0; i < n; ++i) permutation[i] = i;
                          sign = 1;
                          if (!all_finite(a, size)) {
                            fill_nan(lu, size);
                            fill_nan(&sign, 1);
                            return true;
                          }
                          transpose_to(place.elements, a, n, n);
                          int info = 0;
                          if (n > 0) Lapack<T>::getrf(&n, &n, place.elements, &n, place.integers, &info);
                          transpose_to(lu, place.elements, n, n);
                          for (int i = 0; i < n; ++i) {
                            const int row = place.integers[i] - 1;
                            std::swap(permutation[i], permutation[row]);
                            const T pivot = lu[std::int64_t{i} * n + i];
                            if (row != i) sign = -sign;
                            sign *= std::isnan(pivot) ? pivot : static_cast<T>((pivot > 0) - (pivot < 0));
                          }
                          return info == 0;
                        });
}

template <class T>
Kernel make_qr(const KernelForm& form) {
  const Matrices matrices(form.shape(0));
  const int m = matrices.rows, n = matrices.columns, k = matrices.least(), step = std::max(1, m), query = -1;
  T work[2] = {};
  int info = 0;
  Lapack<T>::geqrf(&m, &n, nullptr, &step, nullptr, &work[0], &query, &info);
  Lapack<T>::orgqr(&m, &k, &k, nullptr, &step, nullptr, &work[1], &query, &info);
  const std::int64_t size = matrices.size();
  return each_matrix<T>(
      matrices, {size + k, std::max(matrices.asked(work[0]), matrices.asked(work[1])), 0}, form, false, "",
      [=](const KernelArguments& arguments, std::int64_t number, const Place<T>& place) {
        const T* a = in<T>(arguments, 0) + number * size;
        T* q = out<T>(arguments, 0) + number * m * k;
        T* r = out<T>(arguments, 1) + number * k * n;
        if (k == 0) return true;
        if (!all_finite(a, size)) {
          fill_nan(q, std::int64_t{m} * k);
          fill_nan(r, std::int64_t{k} * n);
          return true;
        }
        T *columns = place.elements, *tau = columns + size;
        transpose_to(columns, a, m, n);
        int done = 0;
        Lapack<T>::geqrf(&m, &n, columns, &m, tau, place.lapack, &place.lapack_size, &done);
        by_tiles(k, n, [&](std::int64_t i, std::int64_t j) { r[i * n + j] = i <= j ? columns[j * m + i] : T{0}; });
        Lapack<T>::orgqr(&m, &k, &k, columns, &m, tau, place.lapack, &place.lapack_size, &done);
        transpose_to(q, columns, k, m);
        return true;
      });
}

template <class T>
Kernel make_eigh(const KernelForm& form) {
  const Matrices matrices(form.shape(0));
  const int n = matrices.rows, step = std::max(1, n), query = -1;
  T work = 0;
  int integers = 0, info = 0;
  Lapack<T>::syevd("V", "U", &n, nullptr, &step, nullptr, &work, &query, &integers, &query, &info, 1, 1);
  return each_matrix<T>(matrices, {0, matrices.asked(work, 1 + 6.0 * n + 2.0 * n * n), std::max(1, integers)}, form,
                        form.get<bool>("check"), "beyond LAPACK's syevd, which does not converge",
                        [=](const KernelArguments& arguments, std::int64_t number, const Place<T>& place) {
                          const std::int64_t size = matrices.size();
                          T* w = out<T>(arguments, 0) + number * n;
                          T* v = out<T>(arguments, 1) + number * size;
                          symmetrise(v, in<T>(arguments, 0) + number * size, n);
                          const bool finite = all_finite(v, size);
                          int failed = 0;
                          if (finite && n > 0)
                            Lapack<T>::syevd("V", "U", &n, v, &n, w, place.lapack, &place.lapack_size, place.integers,
                                             &integers, &failed, 1, 1);
                          if (!finite || failed != 0) {
                            fill_nan(w, n);
                            fill_nan(v, size);
                          }
                          by_tiles(n, n, [&](std::int64_t i, std::int64_t j) {
                            if (j < i) std::swap(v[i * n + j], v[j * n + i]);
                          });
                          return failed == 0;
                        });
}

template <class T>
Kernel make_svd(const KernelForm& form) {
  const Matrices matrices(form.shape(0));
  const int m = matrices.rows, n = matrices.columns, k = matrices.least(), query = -1;
  const int row = std::max(1, n), part = std::max(1, k);
  T work = 0;
  int info = 0, integer = 0;
  // LAPACK reads the rows as columns. It therefore decomposes aᵀ = V S Uᵀ, and writes the rows of U and V.
  Lapack<T>::gesdd("S", &n, &m, nullptr, &row, nullptr, nullptr, &row, nullptr, &part, &work, &query, &integer, &info,
                   1);
  const std::int64_t size = matrices.size();
  return each_matrix<T>(matrices, {size, matrices.asked(work, 1 + 7.0 * k + 4.0 * k * k), std::int64_t{8} * part}, form,
                        form.get<bool>("check"), "beyond LAPACK's gesdd, which does not converge",
                        [=](const KernelArguments& arguments, std::int64_t number, const Place<T>& place) {
                          const T* a = in<T>(arguments, 0) + number * size;
                          T* u = out<T>(arguments, 0) + number * m * k;
                          T* s = out<T>(arguments, 1) + number * k;
                          T* vh = out<T>(arguments, 2) + number * k * n;
                          if (k == 0) return true;
                          const bool finite = all_finite(a, size);
                          int failed = 0;
                          std::copy_n(a, size, place.elements);
                          if (finite)
                            Lapack<T>::gesdd("S", &n, &m, place.elements, &n, s, vh, &n, u, &k, place.lapack,
                                             &place.lapack_size, place.integers, &failed, 1);
                          if (!finite || failed != 0) {
                            fill_nan(u, std::int64_t{m} * k);
                            fill_nan(s, k);
                            fill_nan(vh, std::int64_t{k} * n);
                          }
                          return failed == 0;
                        });
}

/// The factors of a matrix [n, n]: element (i, j) of L D U is element (rows[i], columns[j]) of the matrix. L is unit
/// lower triangular, U is unit upper triangular, and D is diagonal. `ldu` holds all three. If the matrix has rank r,
/// all elements of D after the first r are 0, apart from rounding errors.
template <class T>
struct PivotedFactors {
  T* ldu;
  int *rows, *columns;
  std::int64_t n;
  long double product = 1;  ///< Of the pivots that are not 0, with the sign of the permutations. long double has room.
  int zeros = 0;            ///< The number of pivots that are 0.

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
      product = -product;
    }
    if (column != k) {
      for (std::int64_t i = 0; i < n; ++i) std::swap(ldu[i * n + k], ldu[i * n + column]);
      std::swap(columns[k], columns[column]);
      product = -product;
    }
  }
  void compute(const T* matrix) {
    std::copy_n(matrix, n * n, ldu);
    if (pivot_by_lapack()) return;
    std::copy_n(matrix, n * n, ldu);
    pivot_completely();
  }
  /// Replaces the matrix in `ldu` by its factors, with pivots that are the largest of their row. Returns false, after
  /// an unspecified change, if a pivot is so small that L would be inexact: the matrix may be singular.
  bool pivot_by_lapack() {
    const int size = static_cast<int>(n);
    int info = 0;
    // LAPACK reads the rows as columns. So it factorises the transpose, and exchanges columns of the matrix.
    if (n > 0) Lapack<T>::getrf(&size, &size, ldu, &size, rows, &info);
    T least = std::numeric_limits<T>::infinity(), greatest = 0;
    for (std::int64_t k = 0; k < n; ++k) {
      least = std::min(least, std::abs(pivot(k)));
      greatest = std::max(greatest, std::abs(pivot(k)));
    }
    if (!(least > 0 && least >= std::sqrt(std::numeric_limits<T>::epsilon()) * greatest)) return false;
    std::iota(columns, columns + n, 0);
    for (std::int64_t k = 0; k < n; ++k) {
      const std::int64_t column = rows[k] - 1;
      std::swap(columns[k], columns[column]);
      product *= column == k ? pivot(k) : -pivot(k);
    }
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t k = 0; k < i; ++k) ldu[i * n + k] /= pivot(k);
    std::iota(rows, rows + n, 0);
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
      product *= divisor;
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
    long double rest = product;
    const auto leave_out = [&](T x) { x == 0 ? void(--left) : void(rest /= x); };
    leave_out(pivot(i));
    if (j != i) leave_out(pivot(j));
    return left > 0 ? T{0} : static_cast<T>(rest);
  }
  void solve(CBLAS_SIDE side, CBLAS_UPLO triangle, CBLAS_TRANSPOSE operation, T* x) const {
    const int size = static_cast<int>(n);
    Lapack<T>::trsm(CblasRowMajor, side, triangle, operation, CblasUnit, size, size, 1, ldu, size, x, size);
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
template <class T, bool derivative>
Kernel make_cofactors(const KernelForm& form) {
  const Matrices matrices(form.shape(0));
  const std::int64_t n = matrices.rows, size = matrices.size();
  return each_matrix<T>(matrices, {2 * size + n, 0, 2 * n}, form, false, "",
                        [=](const KernelArguments& arguments, std::int64_t number, const Place<T>& place) {
                          const T* a = in<T>(arguments, 0) + number * size;
                          T* y = out<T>(arguments, 0) + number * size;
                          if (!all_finite(a, size)) {
                            fill_nan(y, size);
                            return true;
                          }
                          PivotedFactors<T> factors{place.elements, place.integers, place.integers + n, n};
                          factors.compute(a);
                          T* m = place.elements + size;
                          std::fill_n(m, size, T{0});
                          const auto at = [&](std::int64_t i, std::int64_t j) {
                            return factors.rows[i] * n + factors.columns[j];
                          };
                          if constexpr (derivative) {
                            const T* direction = in<T>(arguments, 1) + number * size;
                            by_tiles(n, n, [&](std::int64_t i, std::int64_t j) { m[i * n + j] = direction[at(i, j)]; });
                            factors.solve(CblasLeft, CblasLower, CblasNoTrans, m);
                            factors.solve(CblasRight, CblasUpper, CblasNoTrans, m);
                            differentiate_cofactors(factors, m, m + size);
                          } else {
                            for (std::int64_t i = 0; i < n; ++i) m[i * n + i] = factors.product_without(i, i);
                          }
                          factors.solve(CblasLeft, CblasLower, CblasTrans, m);
                          factors.solve(CblasRight, CblasUpper, CblasTrans, m);
                          by_tiles(n, n, [&](std::int64_t i, std::int64_t j) { y[at(i, j)] = m[i * n + j]; });
                          return true;
                        });
}

template <class T>
Kernel make_of(const std::string& op, const KernelForm& form) {
  if (op == "det_grad") return make_cofactors<T, false>(form);
  if (op == "det_grad_grad") return make_cofactors<T, true>(form);
  if (op == "cholesky") return make_cholesky<T>(form);
  if (op == "triangular_solve") return make_triangular_solve<T>(form);
  if (op == "lu") return make_lu<T>(form);
  if (op == "qr") return make_qr<T>(form);
  if (op == "eigh") return make_eigh<T>(form);
  return make_svd<T>(form);
}
}  // namespace

Kernel make_linear_algebra(const std::string& op, const KernelForm& form) {
  return form.dtype(0) == Dtype::float64 ? make_of<double>(op, form) : make_of<float>(op, form);
}

}  // namespace xtape
