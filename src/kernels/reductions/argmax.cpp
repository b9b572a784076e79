// The index of the largest element along an axis of a dense array. NaN counts as larger than any number. Ties give the
// first index.

#include <algorithm>
#include <limits>

#include "base/threads/threads.hpp"
#include "kernels/elements/scalar.hpp"
#include "kernels/reductions/reduce.hpp"
#include "kernels/table/kernel_form.hpp"

namespace xtape {

namespace {
constexpr std::int64_t together = 8;  // short rows, or columns, that are compared at the same time
constexpr std::int64_t many = 32;     // rows of at least this many elements use SIMD along the row

template <class T>
bool greater(T a, T b) {
  return a > b || (a != a && b == b);
}

/// Returns the position of the first element for which is_it holds. There must be such an element. Tests whole blocks
/// with SIMD, then searches the first matching block element by element.
template <class T, class Is>
std::int64_t first_of(const T* x, std::int64_t size, const Is& is_it) {
  constexpr std::int64_t block = 64;
  std::int64_t i = 0;
  for (; i + block <= size; i += block) {
    T found = 0;
#pragma omp simd reduction(+ : found)
    for (std::int64_t k = i; k < i + block; ++k) found += is_it(x[k]) ? T{1} : T{0};
    if (found != 0) break;
  }
  while (!is_it(x[i])) ++i;
  return i;
}

/// For each of `rows` rows, finds the index of the largest of `size` elements. Rows are `row` elements apart, and
/// elements are `step` elements apart. The comparisons of one row wait for each other, so several rows at a time are
/// faster.
template <std::int64_t rows, class T>
void largest_of_few(const T* x, std::int64_t row, std::int64_t size, std::int64_t step, std::int64_t* best) {
  T most[rows];
  std::int64_t places[rows] = {};
  for (std::int64_t r = 0; r < rows; ++r) most[r] = x[r * row];
  for (std::int64_t i = 1; i < size; ++i)
    for (std::int64_t r = 0; r < rows; ++r) {
      const T each = x[r * row + i * step];
      const bool more = greater(each, most[r]);
      places[r] = more ? i : places[r];  // branch-free, because no processor could predict the branch
      most[r] = more ? each : most[r];
    }
  std::copy_n(places, rows, best);
}

/// The index of the largest of many contiguous elements.
template <class T>
std::int64_t largest_of_many(const T* x, std::int64_t size) {
  T most = x[0], unordered = 0;
#pragma omp simd reduction(max : most) reduction(+ : unordered)
  for (std::int64_t i = 0; i < size; ++i) {
    most = x[i] > most ? x[i] : most;
    unordered += x[i] == x[i] ? T{0} : T{1};
  }
  if (unordered != 0) return first_of(x, size, [](T element) { return element != element; });
  // OpenMP may begin the maximum at the lowest finite number, which is larger than -infinity.
  if (most <= std::numeric_limits<T>::lowest()) {
    std::int64_t best = 0;
    largest_of_few<1>(x, 0, size, 1, &best);
    return best;
  }
  return first_of(x, size, [most](T element) { return element == most; });
}

/// The index of the largest element along an axis, which must not be empty.
Kernel make_argmax(const KernelForm& form) {
  const Middle extent = Middle::around(form.shape(0), form.get<std::int64_t>("axis"));
  return with_number(form.dtype(0), [&](auto scalar) {
    using T = decltype(scalar);
    return Kernel{[extent, threads = form.threads](const KernelArguments& arguments) {
      const T* from = in<T>(arguments, 0);
      auto* best_of = out<std::int64_t>(arguments, 0);
      const std::int64_t size = extent.size, inner = extent.inner;
      const std::int64_t grain = std::max<std::int64_t>(1, (1 << 14) / size);
      parallel_for(threads, extent.outer * inner, grain, [=](std::int64_t begin, std::int64_t finish) {
        const std::int64_t row = inner == 1 ? size : 1;
        for (std::int64_t unit = begin; unit < finish;) {
          const std::int64_t column = unit % inner;
          const T* first = from + unit / inner * size * inner + column;
          if (inner == 1 && size >= many) {
            best_of[unit++] = largest_of_many(first, size);
          } else if (unit + together <= finish && (inner == 1 || column + together <= inner)) {
            largest_of_few<together>(first, row, size, inner, best_of + unit);
            unit += together;
          } else {
            largest_of_few<1>(first, row, size, inner, best_of + unit++);
          }
        }
      });
    }};
  });
}
}  // namespace

KernelList list_argmax() {
  return {{"argmax", make_argmax}};
}

}  // namespace xtape
