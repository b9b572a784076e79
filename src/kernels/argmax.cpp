#include "argmax.hpp"

#include <algorithm>
#include <numeric>

#include "scalar.hpp"
#include "threads.hpp"

namespace xtape {

namespace {
template <class T>
bool greater(T a, T b) {
  return a > b || (a != a && b == b);
}

/// The number of rows per piece. There are at most `threads` pieces, each with its own scratch.
std::int64_t rows_in_piece(std::int64_t rows, int threads) {
  return std::max<std::int64_t>(1, (rows + threads - 1) / threads);
}
}  // namespace

void argmax_kernel(Dtype dtype, const void* in, const Middle& extent, std::int64_t* out, int threads) {
  with_number(dtype, [&](auto scalar) {
    using T = decltype(scalar);
    const T* from = static_cast<const T*>(in);
    const auto [outer, size, inner] = extent;
    const std::int64_t grain = std::max<std::int64_t>(1, (1 << 14) / size);
    parallel_for(threads, outer * inner, grain,
                 [=, size = size, inner = inner](std::int64_t begin, std::int64_t finish) {
                   for (std::int64_t unit = begin; unit < finish; ++unit) {
                     const T* column = from + unit / inner * size * inner + unit % inner;
                     std::int64_t best = 0;
                     for (std::int64_t i = 1; i < size; ++i)
                       if (greater(column[i * inner], column[best * inner])) best = i;
                     out[unit] = best;
                   }
                 });
  });
}

std::size_t top_k_scratch(std::int64_t rows, std::int64_t length, int threads) {
  return static_cast<std::size_t>(std::min<std::int64_t>(rows, threads) * length) * sizeof(std::int64_t);
}

void top_k_kernel(Dtype dtype, const void* in, std::int64_t rows, std::int64_t length, std::int64_t k, void* values,
              std::int64_t* indices, void* scratch, int threads) {
  const std::int64_t piece = rows_in_piece(rows, threads);
  with_number(dtype, [&](auto scalar) {
    using T = decltype(scalar);
    parallel_each(threads, (rows + piece - 1) / piece, [&](std::int64_t number) {
      std::int64_t* order = static_cast<std::int64_t*>(scratch) + number * length;
      for (std::int64_t row = number * piece; row < std::min(rows, (number + 1) * piece); ++row) {
        const T* from = static_cast<const T*>(in) + row * length;
        std::iota(order, order + length, std::int64_t{0});
        std::partial_sort(order, order + k, order + length, [from](std::int64_t a, std::int64_t b) {
          return greater(from[a], from[b]) || (!greater(from[b], from[a]) && a < b);
        });
        for (std::int64_t i = 0; i < k; ++i) {
          static_cast<T*>(values)[row * k + i] = from[order[i]];
          indices[row * k + i] = order[i];
        }
      }
    });
  });
}

}  // namespace xtape
