// cholesky, triangular_solve, lu and qr.
#include "base/threads/threads.hpp"
#include "kernels/elements/scalar.hpp"
#include "kernels/linear_algebra/matrix_batches.hpp"
#include "kernels/linear_algebra/reflectors.hpp"
#include "kernels/linear_algebra/triangles.hpp"

namespace xtape {

namespace {
Kernel make_cholesky(const KernelForm& form) {
  const Matrices matrices(form.shape(0));
  const std::int64_t n = matrices.rows, size = matrices.size();
  return with_floating(form.dtype(0), [&](auto scalar) {
    using T = decltype(scalar);
    return each_matrix<T>(matrices, {}, form, form.get<bool>("check"), "not positive definite",
                          [=](const KernelArguments& arguments, std::int64_t number, const Place<T>&) {
                            T* l = out<T>(arguments, 0) + number * size;
                            symmetrise(l, in<T>(arguments, 0) + number * size, n);
                            const bool finite = all_finite(l, size), definite = finite && factor_positive(l, n, n);
                            if (!definite) fill_nan(l, size);
                            for (std::int64_t i = 0; i < n; ++i) std::fill_n(l + i * n + i + 1, n - i - 1, T{0});
                            return definite || !finite;
                          });
  });
}

/// The number of columns of the right-hand side that one task solves. This number does not depend on the number of
/// threads.
constexpr std::int64_t columns_a_task = 256;

Kernel make_triangular_solve(const KernelForm& form) {
  const Matrices matrices(form.shape(1)), factors(form.shape(0));
  const std::int64_t n = matrices.rows, columns = matrices.columns;
  const bool shared = factors.batch.size() < matrices.batch.size(), checks = form.get<bool>("check");
  const bool transposed = form.get<bool>("transposed"), upper = form.get<bool>("upper") != transposed;
  const bool unit = form.get<bool>("unit_diagonal");
  const std::int64_t grain =
      tasks_a_piece(static_cast<double>(n) * static_cast<double>(n * std::min(columns, columns_a_task)));
  return with_floating(form.dtype(0), [&](auto scalar) {
    using T = decltype(scalar);
    return Kernel{[=, threads = form.threads](const KernelArguments& arguments) {
      if (n == 0) return;
      const T* a = in<T>(arguments, 0);
      for (std::int64_t k = 0; checks && !unit && k < factors.count; ++k)
        for (std::int64_t i = 0; i < n; ++i)
          if (a[k * factors.size() + i * n + i] == 0)
            throw Error(factors.name(k) + " is singular: element " + std::to_string(i) + " of its diagonal is 0");
      const T* b = in<T>(arguments, 1);
      T* x = out<T>(arguments, 0);
      const std::int64_t tasks = ceiling(columns, columns_a_task);
      parallel_for(threads, matrices.count * tasks, grain, [=](std::int64_t from, std::int64_t to) {
        for (std::int64_t task = from; task < to; ++task) {
          const std::int64_t number = task / tasks, first = task % tasks * columns_a_task;
          const std::int64_t width = std::min(columns_a_task, columns - first);
          const std::int64_t at = number * matrices.size() + first;
          for (std::int64_t i = 0; b != x && i < n; ++i) std::copy_n(b + at + i * columns, width, x + at + i * columns);
          const View<T> triangle{a + (shared ? 0 : number * factors.size()), n, 1};
          solve_triangle(transposed ? triangle.transposed() : triangle, n, upper, unit, x + at, columns, width);
        }
      });
    }};
  });
}

Kernel make_lu(const KernelForm& form) {
  const Matrices matrices(form.shape(0));
  const std::int64_t n = matrices.rows, size = matrices.size();
  return with_floating(form.dtype(0), [&](auto scalar) {
    using T = decltype(scalar);
    return each_matrix<T>(matrices, {RowPivoting<T>::panel_size(n), 0, 0}, form, form.get<bool>("check"), "singular",
                          [=](const KernelArguments& arguments, std::int64_t number, const Place<T>& place) {
                            const T* a = in<T>(arguments, 0) + number * size;
                            T* lu = out<T>(arguments, 0) + number * size;
                            T& sign = out<T>(arguments, 2)[number];
                            auto* permutation = out<std::int64_t>(arguments, 1) + number * n;
                            if (!all_finite(a, size)) {
                              for (std::int64_t i = 0; i < n; ++i) permutation[i] = i;
                              fill_nan(lu, size);
                              fill_nan(&sign, 1);
                              return true;
                            }
                            std::copy_n(a, size, lu);
                            RowPivoting<T> factors{lu, n, permutation, place.elements};
                            factors.factor();
                            sign = factors.sign;
                            for (std::int64_t i = 0; i < n; ++i) {
                              const T pivot = lu[i * n + i];
                              sign *= std::isnan(pivot) ? pivot : static_cast<T>((pivot > 0) - (pivot < 0));
                            }
                            return !factors.singular;
                          });
  });
}

Kernel make_qr(const KernelForm& form) {
  const Matrices matrices(form.shape(0));
  const std::int64_t m = matrices.rows, n = matrices.columns, k = matrices.least(), size = matrices.size();
  return with_floating(form.dtype(0), [&](auto scalar) {
    using T = decltype(scalar);
    const std::int64_t work = Reflectors<T>::scratch_size(std::max(n, k));
    return each_matrix<T>(matrices, {size + k * m + k + work, 0, 0}, form, false, "",
                          [=](const KernelArguments& arguments, std::int64_t number, const Place<T>& place) {
                            const T* a = in<T>(arguments, 0) + number * size;
                            T *q = out<T>(arguments, 0) + number * m * k, *r = out<T>(arguments, 1) + number * k * n;
                            if (k == 0) return true;
                            if (!all_finite(a, size)) {
                              fill_nan(q, m * k);
                              fill_nan(r, k * n);
                              return true;
                            }
                            T *columns = place.elements, *of_q = columns + size, *tau = of_q + k * m,
                              *scratch = tau + k;
                            transpose_to(columns, a, m, n);
                            factor_by_reflections(columns, m, n, tau, r, scratch);
                            Reflectors<T>{{columns, m, 1}, tau, k, m}.form(of_q, m, scratch);
                            transpose_to(q, of_q, k, m);
                            return true;
                          });
  });
}
}  // namespace

KernelList list_factorisations() {
  return {{"cholesky", make_cholesky}, {"triangular_solve", make_triangular_solve}, {"lu", make_lu}, {"qr", make_qr}};
}

}  // namespace xtape
