// eigh and svd: reductions to one or two diagonals, and QR iterations.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/elements/scalar.hpp"
#include "kernels/linear_algebra/condensed_forms.hpp"
#include "kernels/linear_algebra/matrix_batches.hpp"
#include "kernels/linear_algebra/rotations.hpp"

namespace xtape {

namespace {
constexpr std::int64_t sweeps_a_value = 30;  // until an iteration fails; two are usual

/// Multiplies elements, the largest of which is not 0, by a power of two, so that the largest is about 1. Returns the
/// exponent of this power.
template <class T>
int scale_to_one(T* x, std::int64_t count) {
  T largest = 0;
  for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(x[i]));
  int exponent = 0;
  std::frexp(largest, &exponent);
  exponent = std::min(-exponent, std::numeric_limits<T>::max_exponent - 1);
  const T factor = std::ldexp(T{1}, exponent);
  for (std::int64_t i = 0; i < count; ++i) x[i] *= factor;
  return exponent;
}

/// Numbers `order` so that values(order[0]) is the first of all.
template <class Before>
void sort_numbers(std::int64_t* order, std::int64_t n, const Before& before) {
  std::iota(order, order + n, 0);
  std::sort(order, order + n, [&](std::int64_t a, std::int64_t b) { return before(a, b) || (!before(b, a) && a < b); });
}

/// The first of the large elements of a vector. The kernels make it positive, because the number of sweeps, and with it
/// the sign that an iteration gives, depends on rounding errors.
template <class T>
T first_large(const T* x, std::int64_t n) {
  T largest = 0;
  for (std::int64_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(x[i]));
  return *std::find_if(x, x + n - 1, [=](T each) { return std::abs(each) > static_cast<T>(0.3) * largest; });
}
template <class T>
void negate(T* x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) x[i] = -x[i];
}

Kernel make_eigh(const KernelForm& form) {
  const Matrices matrices(form.shape(0));
  const std::int64_t n = matrices.rows, size = matrices.size();
  return with_floating(form.dtype(0), [&](auto scalar) {
    using T = decltype(scalar);
    const std::int64_t row = TurnedRows<T>::row_size(n), work = Reflectors<T>::scratch_size(n);
    return each_matrix<T>(matrices, {n * row + 3 * n + work, 2 * n + 2 * Sweeps::room(n), n}, form,
                          form.get<bool>("check"), "beyond the QR iteration, which does not converge",
                          [=](const KernelArguments& arguments, std::int64_t number, const Place<T>& place) {
                            T *w = out<T>(arguments, 0) + number * n, *v = out<T>(arguments, 1) + number * size;
                            if (n == 0) return true;
                            symmetrise(v, in<T>(arguments, 0) + number * size, n);
                            const bool finite = all_finite(v, size);
                            T *z = place.elements, *tau = z + n * row, *x = tau + n, *y = x + n, *scratch = y + n;
                            double *d = place.doubles, *e = d + n;
                            std::int64_t* order = place.integers;
                            if (finite) {
                              const int exponent = scale_to_one(v, size);
                              reduce_to_tridiagonal(v, n, d, e, tau, x, y);
                              std::fill_n(z, n * row, T{0});
                              z[0] = 1;
                              Reflectors<T>{{v + 1, n, 1}, tau, n - 1, n - 1}.form(z + row + 1, row, scratch);
                              Sweeps sweeps(reinterpret_cast<Rotation*>(e + n), n);
                              QrIteration state{d, e, std::numeric_limits<T>::epsilon() / 2, n - 1, sweeps_a_value * n};
                              Progress progress = Progress::more;
                              for (; progress == Progress::more; sweeps.clear()) {
                                progress = diagonalise_symmetric(state, sweeps);
                                sweeps.turn(TurnedRows<T>{z, row});
                              }
                              if (progress == Progress::done) {
                                sort_numbers(order, n, [=](std::int64_t a, std::int64_t b) { return d[a] < d[b]; });
                                for (std::int64_t i = 0; i < n; ++i)
                                  w[i] = static_cast<T>(std::ldexp(d[order[i]], -exponent));
                                for (std::int64_t k = 0; k < n; ++k)
                                  if (first_large(z + k * row, n) < 0) negate(z + k * row, n);
                                by_tiles(n, n,
                                         [&](std::int64_t i, std::int64_t j) { v[i * n + j] = z[order[j] * row + i]; });
                                return true;
                              }
                            }
                            fill_nan(w, n);
                            fill_nan(v, size);
                            return !finite;
                          });
  });
}

/// A matrix with at least as many rows as columns, m and n, and its singular values and vectors.
template <class T>
struct Decomposition {
  std::int64_t m, n;
  std::int64_t row_u = TurnedRows<T>::row_size(m), row_v = TurnedRows<T>::row_size(n);

  Work work() const {
    return {n * (row_u + row_v + m) + m + 4 * n + Reflectors<T>::scratch_size(n), 2 * n + 4 * Sweeps::room(n), n};
  }
  T* u(const Place<T>& place) const { return place.elements; }
  T* v(const Place<T>& place) const { return u(place) + n * row_u; }
  T* matrix(const Place<T>& place) const { return v(place) + n * row_v; }

  /// Decomposes `matrix`. Writes the singular values and the order of the rows of Uᵀ and Vᵀ. `vectors` is scratch of
  /// m n elements. Returns whether the iteration converges.
  bool compute(const Place<T>& place, T* vectors, T* s) const {
    T *a = matrix(place), *tau_u = a + m * n, *tau_v = tau_u + n, *x = tau_v + n, *y = x + m, *p = y + n,
      *scratch = p + n;
    double *d = place.doubles, *e = d + n;
    const int exponent = scale_to_one(a, m * n);
    reduce_to_bidiagonal(a, vectors, m, n, d, e, tau_u, tau_v, x, y, p);
    std::fill(u(place), a, T{0});
    Reflectors<T>{{vectors, m, 1}, tau_u, n, m}.form(u(place), row_u, scratch);
    *v(place) = 1;
    Reflectors<T>{{a + 1, n, 1}, tau_v, n - 1, n - 1}.form(v(place) + row_v + 1, row_v, scratch);
    auto* rotations = reinterpret_cast<Rotation*>(e + n);
    Sweeps of_u(rotations, n), of_v(rotations + Sweeps::room(n), n);
    QrIteration state{d, e, std::numeric_limits<T>::epsilon() / 2, n - 1, sweeps_a_value * n};
    Progress progress = Progress::more;
    for (; progress == Progress::more; of_u.clear(), of_v.clear()) {
      progress = diagonalise_bidiagonal(state, of_u, of_v);
      of_u.turn(TurnedRows<T>{u(place), row_u});
      of_v.turn(TurnedRows<T>{v(place), row_v});
    }
    if (progress == Progress::failed) return false;
    for (std::int64_t k = 0; k < n; ++k) {
      T *of_v = v(place) + k * row_v, *of_u = u(place) + k * row_u;
      const bool odd = first_large(of_v, n) < 0;
      if (odd) negate(of_v, n);
      if (odd != (d[k] < 0)) negate(of_u, m);
      d[k] = std::abs(d[k]);
    }
    sort_numbers(place.integers, n, [=](std::int64_t i, std::int64_t j) { return d[i] > d[j]; });
    for (std::int64_t k = 0; k < n; ++k) s[k] = static_cast<T>(std::ldexp(d[place.integers[k]], -exponent));
    return true;
  }
};

Kernel make_svd(const KernelForm& form) {
  const Matrices matrices(form.shape(0));
  const std::int64_t m = matrices.rows, n = matrices.columns, k = matrices.least(), size = matrices.size();
  return with_floating(form.dtype(0), [&](auto scalar) {
    using T = decltype(scalar);
    const Decomposition<T> tall{std::max(m, n), k};  // of A, or of Aᵀ = V S Uᵀ
    return each_matrix<T>(
        matrices, tall.work(), form, form.get<bool>("check"), "beyond the QR iteration, which does not converge",
        [=](const KernelArguments& arguments, std::int64_t number, const Place<T>& place) {
          const T* a = in<T>(arguments, 0) + number * size;
          T *u = out<T>(arguments, 0) + number * m * k, *s = out<T>(arguments, 1) + number * k,
            *vh = out<T>(arguments, 2) + number * k * n;
          if (k == 0) return true;
          const bool finite = all_finite(a, size), wide = m < n;
          if (wide)
            transpose_to(tall.matrix(place), a, m, n);
          else
            std::copy_n(a, size, tall.matrix(place));
          const bool done = finite && tall.compute(place, wide ? vh : u, s);
          if (done) {
            const T *of_u = wide ? tall.v(place) : tall.u(place), *of_v = wide ? tall.u(place) : tall.v(place);
            const std::int64_t row_u = wide ? tall.row_v : tall.row_u, row_v = wide ? tall.row_u : tall.row_v;
            by_tiles(m, k, [&](std::int64_t i, std::int64_t j) { u[i * k + j] = of_u[place.integers[j] * row_u + i]; });
            for (std::int64_t i = 0; i < k; ++i) std::copy_n(of_v + place.integers[i] * row_v, n, vh + i * n);
          } else {
            fill_nan(u, m * k);
            fill_nan(s, k);
            fill_nan(vh, k * n);
          }
          return done || !finite;
        });
  });
}
}  // namespace

KernelList list_spectra() {
  return {{"eigh", make_eigh}, {"svd", make_svd}};
}

}  // namespace xtape
