// The largest elements of a dense array and their indices. NaN counts as larger than any number; among equal elements
// the first wins.
#include <algorithm>
#include <numeric>

#include "kernel_form.hpp"
#include "middle.hpp"
#include "scalar.hpp"
#include "scratch.hpp"
#include "threads.hpp"

namespace xtape {

namespace {
template <class T>
bool greater(T a, T b) {
  return a > b || (a != a && b == b);
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
          std::int64_t best = 0;
          for (std::int64_t i = 1; i < size; ++i)
            if (greater(column[i * inner], column[best * inner])) best = i;
          best_of[unit] = best;
        }
      });
    }};
  });
}

/// The k largest elements of each row, in descending order, and their indices.
Kernel make_top_k(const KernelForm& form) {
  const std::int64_t length = form.shape(0).back(), k = form.get<std::int64_t>("k");
  const std::int64_t rows = length == 0 ? 0 : count_of(form.shape(0)) / length;
  // At most `threads` pieces, each with its own scratch.
  const std::int64_t piece = std::max<std::int64_t>(1, ceiling(rows, form.threads));
  const auto scratch_rows = static_cast<std::size_t>(std::min<std::int64_t>(rows, form.threads) * length);
  return with_number(form.dtype(0), [&](auto scalar) {
    using T = decltype(scalar);
    return Kernel{[=, threads = form.threads](const KernelArguments& arguments) {
                    const T* x = in<T>(arguments, 0);
                    T* values = out<T>(arguments, 0);
                    auto* indices = out<std::int64_t>(arguments, 1);
                    parallel_each(threads, ceiling(rows, piece), [&](std::int64_t number) {
                      std::int64_t* order = static_cast<std::int64_t*>(arguments.scratch) + number * length;
                      for (std::int64_t row = number * piece; row < std::min(rows, (number + 1) * piece); ++row) {
                        const T* from = x + row * length;
                        std::iota(order, order + length, std::int64_t{0});
                        std::partial_sort(order, order + k, order + length, [from](std::int64_t a, std::int64_t b) {
                          return greater(from[a], from[b]) || (!greater(from[b], from[a]) && a < b);
                        });
                        for (std::int64_t i = 0; i < k; ++i) {
                          values[row * k + i] = from[order[i]];
                          indices[row * k + i] = order[i];
                        }
                      }
                    });
                  },
                  scratch_rows * sizeof(std::int64_t)};
  });
}
}  // namespace

KernelList list_argmax() {
  return {{"argmax", make_argmax}, {"top_k", make_top_k}};
}

}  // namespace xtape
