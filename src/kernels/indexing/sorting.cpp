#include <algorithm>
#include <bit>
#include <type_traits>

#include "base/threads/threads.hpp"
#include "kernels/elements/scalar.hpp"
#include "kernels/indexing/index_kernels.hpp"
#include "kernels/reductions/reduce.hpp"
#include "kernels/table/scratch.hpp"

namespace xtape {

namespace {
/// Returns an integer for x. The integers have the order of the numbers, with NaN last. The same fast code then sorts
/// numbers of any dtype.
template <class T>
std::uint64_t order_of(T x) {
  constexpr std::uint64_t sign = std::uint64_t{1} << 63;
  if constexpr (std::is_integral_v<T>) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(x)) ^ sign;
  } else {
    if (x != x) return ~std::uint64_t{0};
    const auto bits = std::bit_cast<std::uint64_t>(x == 0 ? 0.0 : static_cast<double>(x));  // -0 equals 0
    return (bits & sign) != 0 ? ~bits : bits | sign;
  }
}

struct Entry {
  std::uint64_t order;
  std::int64_t index;
};
/// Compares the indices of equal elements. No two entries are therefore equal, and any sorting algorithm keeps the
/// order of equal elements.
bool operator<(const Entry& a, const Entry& b) {
  return a.order < b.order || (a.order == b.order && a.index < b.index);
}

/// Moves the first k entries in order to the front.
void sort_first(Entry* entries, std::int64_t size, std::int64_t k) {
  if (k > size / 16)
    std::sort(entries, entries + size);  // a heap of many entries is slower
  else
    std::partial_sort(entries, entries + k, entries + size);
}
}  // namespace

Kernel make_top_k(const KernelForm& form) {
  const Middle extent = Middle::around(form.shape(0), form.get<std::int64_t>("axis"));
  const std::int64_t k = form.get<std::int64_t>("k"), columns = extent.size == 0 ? 0 : extent.outer * extent.inner;
  const std::uint64_t flipped = form.get<bool>("largest") ? ~std::uint64_t{0} : 0;
  // At most `threads` pieces, each with its own scratch.
  const std::int64_t piece = std::max<std::int64_t>(1, ceiling(columns, form.threads));
  const auto entries_in_all = static_cast<std::size_t>(std::min<std::int64_t>(columns, form.threads) * extent.size);
  return with_number(form.dtype(0), [&](auto scalar) {
    using T = decltype(scalar);
    return Kernel{[=, threads = form.threads](const KernelArguments& arguments) {
                    const T* x = in<T>(arguments, 0);
                    T* values = out<T>(arguments, 0);
                    auto* indices = out<std::int64_t>(arguments, 1);
                    const std::int64_t size = extent.size, inner = extent.inner;
                    parallel_each(threads, ceiling(columns, piece), [&](std::int64_t number) {
                      Entry* entries = static_cast<Entry*>(arguments.scratch) + number * size;
                      for (std::int64_t unit = number * piece; unit < std::min(columns, (number + 1) * piece); ++unit) {
                        const T* from = x + unit / inner * size * inner + unit % inner;
                        for (std::int64_t i = 0; i < size; ++i) entries[i] = {order_of(from[i * inner]) ^ flipped, i};
                        sort_first(entries, size, k);
                        const std::int64_t to = unit / inner * k * inner + unit % inner;
                        for (std::int64_t i = 0; i < k; ++i) {
                          values[to + i * inner] = from[entries[i].index * inner];
                          indices[to + i * inner] = entries[i].index;
                        }
                      }
                    });
                  },
                  entries_in_all * sizeof(Entry)};
  });
}

Kernel make_searchsorted(const KernelForm& form) {
  const Shape &sorted = form.shape(0), &values = form.shape(1);
  const std::int64_t size = sorted.back(), count = count_of(values);
  // There is a single row for all values, or one row for each row of values.
  const std::int64_t each = sorted.size() == 1 ? std::max<std::int64_t>(1, count) : values.back();
  const bool right = form.get<bool>("right");
  return with_number(form.dtype(0), [&](auto scalar) {
    using T = decltype(scalar);
    return Kernel{[=, threads = form.threads](const KernelArguments& arguments) {
      const T *rows = in<T>(arguments, 0), *wanted = in<T>(arguments, 1);
      auto* places = out<std::int64_t>(arguments, 0);
      parallel_for(threads, count, 1 << 10, [=](std::int64_t begin, std::int64_t finish) {
        for (std::int64_t i = begin; i < finish; ++i) {
          const T* row = rows + i / each * size;
          const std::uint64_t order = order_of(wanted[i]);
          const auto before = [=](T x) { return right ? order_of(x) <= order : order_of(x) < order; };
          places[i] = std::partition_point(row, row + size, before) - row;
        }
      });
    }};
  });
}

}  // namespace xtape
