#include "index_reduce.hpp"

#include <algorithm>
#include <cstring>

#include "scalar.hpp"
#include "threads.hpp"

namespace xtape {

namespace {
[[noreturn]] void out_of_range(std::int64_t index, std::int64_t position, std::int64_t size) {
  throw Error("index " + std::to_string(index) + " (at flat position " + std::to_string(position) +
              ") is out of range: the axis has size " + std::to_string(size));
}

/// x [size, inner], and the number of indices.
struct Slices {
  std::int64_t size = 0, inner = 1, count = 0;
};

/// out[indices[p], i] = combine(out[indices[p], i], part[p, i]), in the order of p.
template <class T, class Combine>
Kernel combining(const KernelForm& form, const Combine& combine) {
  Slices slices;
  const Shape& x = form.shape(0);
  slices.size = x[0];
  for (std::size_t i = 1; i < x.size(); ++i) slices.inner *= x[i];
  slices.count = count_of(form.shape(1));
  return with_index(form.dtype(1), [&](auto index) {
    using Index = decltype(index);
    return Kernel{[=, threads = form.threads](const KernelArguments& arguments) {
      const auto [size, inner, count] = slices;
      const auto* indices = in<Index>(arguments, 1);
      for (std::int64_t p = 0; p < count; ++p)
        if (indices[p] < 0 || indices[p] >= size) out_of_range(indices[p], p, size);
      const T* part = in<T>(arguments, 2);
      T* to = out<T>(arguments, 0);
      const std::size_t bytes = static_cast<std::size_t>(size * inner) * sizeof(T);
      if (to != arguments.in[0] && bytes > 0) std::memcpy(to, arguments.in[0], bytes);
      // The work is split along the inner axis, so that equal indices are handled by one thread, in order.
      const std::int64_t grain = 8192 / std::max<std::int64_t>(1, count) / 16 * 16 + 16;
      const std::int64_t slice = inner, rows = count;
      parallel_for(threads, inner, grain, [&](std::int64_t begin, std::int64_t finish) {
        for (std::int64_t p = 0; p < rows; ++p) {
          T* at = to + indices[p] * slice;
          const T* from = part + p * slice;
          for (std::int64_t i = begin; i < finish; ++i) at[i] = combine(at[i], from[i]);
        }
      });
    }};
  });
}

/// The larger, or the smaller, of two numbers; NaN if one is.
template <bool largest, class T>
T extreme(T a, T b) {
  return (largest ? b > a : b < a) || b != b ? b : a;
}
}  // namespace

Kernel make_checked_indices(const KernelForm& form) {
  const std::int64_t size = form.get<std::int64_t>("size"), count = count_of(form.shape(0));
  const std::int64_t least = form.get<bool>("wrap") ? -size : 0;
  return with_index(form.dtype(0), [&](auto index) {
    using Index = decltype(index);
    return Kernel{[=](const KernelArguments& arguments) {
      const auto* indices = in<Index>(arguments, 0);
      auto* checked = out<std::int64_t>(arguments, 0);
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t each = indices[i];
        if (each < least || each >= size) out_of_range(each, i, size);
        checked[i] = each < 0 ? each + size : each;
      }
    }};
  });
}

Kernel make_index_reduce(const KernelForm& form) {
  const auto& reduce = form.get<std::string>("reduce");
  if (reduce == "set") {
    const auto last = [](auto, auto b) { return b; };
    switch (size_of(form.dtype(0))) {
      case 1:
        return combining<std::uint8_t>(form, last);
      case 4:
        return combining<std::uint32_t>(form, last);
      default:
        return combining<std::uint64_t>(form, last);
    }
  }
  return with_number(form.dtype(0), [&](auto scalar) {
    using T = decltype(scalar);
    if (reduce == "prod")
      return combining<T>(form, [](T a, T b) {
        return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
      });
    if (reduce == "amax") return combining<T>(form, [](T a, T b) { return extreme<true>(a, b); });
    return combining<T>(form, [](T a, T b) { return extreme<false>(a, b); });
  });
}

}  // namespace xtape
