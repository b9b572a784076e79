/// Loops over the matrices of a batch, and over the elements of a matrix.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>

#include "base/threads/threads.hpp"
#include "kernels/table/kernel_form.hpp"
#include "kernels/table/scratch.hpp"

namespace xtape {

/// The matrices of an input: their batch and their sizes.
struct Matrices {
  explicit Matrices(const Shape& given)
      : shape(given),
        batch(given.begin(), given.end() - 2),
        count(count_of(batch)),
        rows(given[given.size() - 2]),
        columns(given.back()) {
    std::int64_t scratch = most_scratch;
    if (!checked_multiply(scratch, rows) || !checked_multiply(scratch, columns))
      throw Error("the matrices of " + to_string(shape) + " are too large");
  }
  static constexpr std::int64_t most_scratch = 64;  ///< Bytes for each element.
  std::int64_t least() const { return std::min(rows, columns); }
  std::int64_t size() const { return rows * columns; }
  /// The name of the matrix with this number, for errors: "matrix (1, 2) of the batch (3, 4)".
  std::string name(std::int64_t number) const {
    if (batch.empty()) return "the matrix";
    Shape index = batch;
    for (std::size_t axis = batch.size(); axis-- > 0; number /= batch[axis]) index[axis] = number % batch[axis];
    return "matrix " + to_string(index) + " of the batch " + to_string(batch);
  }

  Shape shape, batch;
  std::int64_t count, rows, columns;
};

/// The numbers of elements, doubles and integers that a thread needs for a matrix.
struct Work {
  std::int64_t elements = 0, doubles = 0, integers = 0;
};

/// The scratch memory of one thread. `elements` begin a cache line.
template <class T>
struct Place {
  T* elements;
  double* doubles;
  std::int64_t* integers;
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
  if (all_empty(form.outputs)) return Kernel{[](const KernelArguments&) {}};
  const auto threads = static_cast<int>(std::clamp<std::int64_t>(matrices.count, 1, form.threads));
  const std::size_t doubles = whole_lines(static_cast<std::size_t>(work.elements) * sizeof(T));
  const std::size_t integers = doubles + static_cast<std::size_t>(work.doubles) * sizeof(double);
  const std::size_t each = whole_lines(integers + static_cast<std::size_t>(work.integers) * sizeof(std::int64_t));
  const auto side = static_cast<double>(std::max(matrices.rows, matrices.columns));
  const std::int64_t grain = tasks_a_piece(side * side * side);
  return Kernel{
      [=](const KernelArguments& arguments) {
        std::atomic<std::int64_t> first{matrices.count};
        parallel_pieces(threads, matrices.count, grain, [&](std::int64_t from, std::int64_t to, std::int64_t worker) {
          auto* memory = static_cast<std::byte*>(arguments.scratch) + static_cast<std::size_t>(worker) * each;
          const Place<T> place{reinterpret_cast<T*>(memory), reinterpret_cast<double*>(memory + doubles),
                               reinterpret_cast<std::int64_t*>(memory + integers)};
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
/// Transposes a [n, n] in place.
template <class T>
void transpose(T* a, std::int64_t n) {
  by_tiles(n, n, [&](std::int64_t i, std::int64_t j) {
    if (j < i) std::swap(a[i * n + j], a[j * n + i]);
  });
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
#pragma omp simd reduction(+ : zero)
  for (std::int64_t i = 0; i < count; ++i) zero += x[i] * 0;
  return zero == 0;
}
template <class T>
void fill_nan(T* x, std::int64_t count) {
  std::fill_n(x, count, std::numeric_limits<T>::quiet_NaN());
}

}  // namespace xtape
