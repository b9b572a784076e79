// The indices of the largest elements of a dense array. NaN counts as larger than any number; among equal elements the
// first wins.
#include "compact.hpp"

#include <algorithm>

#include "kernel_form.hpp"
#include "middle.hpp"
#include "scalar.hpp"
#include "threads.hpp"

namespace xtape {

namespace {
template <class T>
bool greater(T a, T b) {
  return a > b || (a != a && b == b);
}

/// The same for dense elements. Most blocks have none that is larger than those before, which is quickly found.
template <class T>
std::int64_t largest_of(const T* x, std::int64_t size) {
  constexpr std::int64_t block = 128;
  std::int64_t best = 0;
  for (std::int64_t begin = 0; begin < size; begin += block) {
    const std::int64_t end = std::min(size, begin + block);
    const T most = x[best];
    T larger = 0;
#pragma omp simd reduction(+ : larger)
    for (std::int64_t i = begin; i < end; ++i) larger += x[i] <= most ? T{0} : T{1};  // also for NaN
    if (larger == 0) continue;
    for (std::int64_t i = begin; i < end; ++i)
      if (greater(x[i], x[best])) best = i;
    if (x[best] != x[best]) break;
  }
  return best;
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
        for (std::int64_t unit = begin; unit < finish; ++unit) {
          const T* column = from + unit / inner * size * inner + unit % inner;
          if (inner == 1) {
            best_of[unit] = largest_of(column, size);
            continue;
          }
          std::int64_t best = 0;
          for (std::int64_t i = 1; i < size; ++i)
            if (greater(column[i * inner], column[best * inner])) best = i;
          best_of[unit] = best;
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
