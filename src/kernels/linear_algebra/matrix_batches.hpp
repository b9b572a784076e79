/// Loops over the matrices of a batch, and over the elements of a matrix.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>

#include "base/threads/threads.hpp"
#include "kernels/products/blas_core.hpp"
#include "kernels/table/kernel_form.hpp"
#include "kernels/table/scratch.hpp"

namespace xtape {

/// The matrices of an input: their batch and their sizes. LAPACK requires sizes that fit 32 bits.
struct Matrices {
  explicit Matrices(const Shape& given) : shape(given), batch(given.begin(), given.end() - 2), count(count_of(batch)) {
    require_fit(std::max(shape[shape.size() - 2], shape.back()) <= std::numeric_limits<int>::max());
    rows = static_cast<int>(shape[shape.size() - 2]);
    columns = static_cast<int>(shape.back());
  }
  int least() const { return std::min(rows, columns); }
  std::int64_t size() const { return std::int64_t{rows} * columns; }
  void require_fit(bool fit) const {
    if (!fit)
      throw Error("the matrices of " + to_string(shape) + " are too large for LAPACK, whose sizes have 32 bits");
  }
  /// Returns the number of workspace elements for `work`, the number that LAPACK requests. LAPACK returns this number
  /// as a float, so the result is rounded up. The result is at least `least`, the documented minimum, because LAPACK's
  /// request may have overflowed 32 bits.
  template <class T>
  std::int64_t asked(T work, double least = 1) const {
    const double rounded = static_cast<double>(work) * (1 + static_cast<double>(std::numeric_limits<T>::epsilon()));
    const double most = std::max(rounded, least);
    require_fit(most < std::numeric_limits<int>::max());
    return static_cast<std::int64_t>(std::ceil(most));
  }
  /// The name of the matrix with this number, for errors: "matrix (1, 2) of the batch (3, 4)".
  std::string name(std::int64_t number) const {
    if (batch.empty()) return "the matrix";
    Shape index = batch;
    for (std::size_t axis = batch.size(); axis-- > 0; number /= batch[axis]) index[axis] = number % batch[axis];
    return "matrix " + to_string(index) + " of the batch " + to_string(batch);
  }

  Shape shape, batch;
  std::int64_t count;
  int rows = 0, columns = 0;
};

/// The memory that a thread needs for a matrix: the number of elements, which includes the workspace of LAPACK, and the
/// number of integers for LAPACK.
struct Work {
  std::int64_t elements = 0, lapack = 0, integers = 0;
};

/// The scratch memory of one thread.
template <class T>
struct Place {
  T* elements;
  T* lapack;
  int* integers;
  int lapack_size;
};

/// The least number of tasks that another thread should take, if a task has `multiply_adds` multiply-adds. For fewer
/// tasks, another thread does not pay off.
inline std::int64_t tasks_a_piece(double multiply_adds) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(20'000 / (multiply_adds + 1)));
}

/// Whether all outputs are empty. The batch may still contain any number of matrices, which are then empty, too.
inline bool all_empty(const std::vector<ValueType>& outputs) {
  return std::all_of(outputs.begin(), outputs.end(), [](const ValueType& type) { return count_of(type.shape) == 0; });
}

/// A kernel that calls solve(arguments, number, place) for each matrix. `solve` returns whether the matrix has a
/// solution. If a matrix has no solution and `checks` is set, the run throws Error, "… is " + `refused`.
template <class T, class Solve>
Kernel each_matrix(const Matrices& matrices, const Work& work, const KernelForm& form, bool checks, const char* refused,
                   const Solve& solve) {
  reserve_blas();
  const auto threads = static_cast<int>(std::clamp<std::int64_t>(matrices.count, 1, form.threads));
  std::int64_t bytes = work.elements, integer_bytes = work.integers, all = threads;
  matrices.require_fit(checked_add(bytes, work.lapack) && checked_multiply(bytes, sizeof(T)) &&
                       checked_multiply(integer_bytes, sizeof(int)) && checked_add(bytes, integer_bytes + 128) &&
                       checked_multiply(all, bytes));
  if (all_empty(form.outputs)) return Kernel{[](const KernelArguments&) {}};
  const std::size_t each = whole_lines(static_cast<std::size_t>(bytes));
  const double side = std::max(matrices.rows, matrices.columns);
  const std::int64_t grain = tasks_a_piece(side * side * side);
  return Kernel{
      [=](const KernelArguments& arguments) {
        std::atomic<std::int64_t> first{matrices.count};
        parallel_pieces(threads, matrices.count, grain, [&](std::int64_t from, std::int64_t to, std::int64_t worker) {
          auto* memory = static_cast<std::byte*>(arguments.scratch) + static_cast<std::size_t>(worker) * each;
          T* elements = reinterpret_cast<T*>(memory);
          T* lapack = elements + work.elements;
          const Place<T> place{elements, lapack, reinterpret_cast<int*>(lapack + work.lapack),
                               static_cast<int>(work.lapack)};
          for (std::int64_t i = from; i < to; ++i) {
            if (solve(arguments, i, place)) continue;
            std::int64_t before = first;
            while (i < before && !first.compare_exchange_weak(before, i)) {
            }
          }
        });
        if (checks && first < matrices.count) throw Error(matrices.name(first) + " is " + refused);
      },
      each * static_cast<std::size_t>(threads)};
}

inline constexpr std::int64_t matrix_tile = 32;  // rows and columns of a tile, so that both arrays fit the cache

/// Calls body(i, j) for the elements of [rows, columns] tile by tile.
template <class Body>
void by_tiles(std::int64_t rows, std::int64_t columns, const Body& body) {
  for (std::int64_t r = 0; r < rows; r += matrix_tile)
    for (std::int64_t c = 0; c < columns; c += matrix_tile)
      for (std::int64_t i = r; i < std::min(rows, r + matrix_tile); ++i)
        for (std::int64_t j = c; j < std::min(columns, c + matrix_tile); ++j) body(i, j);
}
/// to[j, i] = from[i, j].
template <class T>
void transpose_to(T* to, const T* from, std::int64_t rows, std::int64_t columns) {
  by_tiles(rows, columns, [&](std::int64_t i, std::int64_t j) { to[j * rows + i] = from[i * columns + j]; });
}
/// to = (a + aᵀ) / 2. `to` and `a` may be the same array. If a[i, j] equals a[j, i], the element is copied, because
/// half of a subnormal element may be inexact.
template <class T>
void symmetrise(T* to, const T* a, std::int64_t n) {
  by_tiles(n, n, [&](std::int64_t i, std::int64_t j) {
    const T x = a[i * n + j], y = a[j * n + i];
    if (j <= i) to[i * n + j] = to[j * n + i] = x == y ? x : x / 2 + y / 2;
  });
}
template <class T>
bool all_finite(const T* x, std::int64_t count) {
  T zero = 0;
  for (std::int64_t i = 0; i < count; ++i) zero += x[i] * 0;
  return zero == 0;
}
template <class T>
void fill_nan(T* x, std::int64_t count) {
  std::fill_n(x, count, std::numeric_limits<T>::quiet_NaN());
}

}  // namespace xtape
