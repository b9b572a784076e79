#include <algorithm>
#include <cstring>

#include "base/threads/threads.hpp"
#include "kernels/elements/scalar.hpp"
#include "kernels/indexing/index_kernels.hpp"

namespace xtape {

namespace {
[[noreturn]] void throw_out_of_range(std::int64_t index, std::int64_t position, std::int64_t size) {
  throw Error("index " + std::to_string(index) + " (at flat position " + std::to_string(position) +
              ") is out of range: the axis has size " + std::to_string(size));
}

/// x [outer, size, inner], and the number of indices along the axis.
struct Slices {
  std::int64_t outer = 1, size = 1, inner = 1, count = 1;
};

/// out[o, index, i] = combine(out[o, index, i], part[o, p, i]) in the order of p. The index is indices[o, p, i], or
/// indices[p] for whole slices.
template <bool whole, class T, class Combine>
void combine_all(T* to, const std::int64_t* indices, const T* part, const Slices& slices, int threads,
                 const Combine& combine) {
  const auto [outer, size, inner, count] = slices;
  const std::int64_t grain = 8192 / std::max<std::int64_t>(1, count) / 16 * 16 + 16, in_row = inner, rows = count,
                     high = size;
  // A single thread processes each column, so equal indices are processed in order.
  parallel_for(threads, outer * inner, grain, [&](std::int64_t begin, std::int64_t finish) {
    while (begin < finish) {
      const std::int64_t o = begin / in_row, first = begin % in_row, last = std::min(in_row, first + finish - begin);
      for (std::int64_t p = 0; p < rows; ++p) {
        const std::int64_t row = (o * rows + p) * in_row;
        T* base = to + o * high * in_row;
        if constexpr (whole) base += indices[p] * in_row;
        for (std::int64_t i = first; i < last; ++i) {
          T* at = base + i;
          if constexpr (!whole) at += indices[row + i] * in_row;
          *at = combine(*at, part[row + i]);
        }
      }
      begin += last - first;
    }
  });
}

template <class T, class Combine>
Kernel combining(const KernelForm& form, bool whole, const Combine& combine) {
  const Shape& x = form.shape(0);
  const std::size_t axis = whole ? 0 : normal_axis(form.get<std::int64_t>("axis"), x.size());
  Slices slices;
  for (std::size_t i = 0; i < x.size(); ++i) (i < axis ? slices.outer : i == axis ? slices.size : slices.inner) *= x[i];
  const std::int64_t indexed = count_of(form.shape(1));
  slices.count = whole ? indexed : form.shape(1)[axis];
  return Kernel{[=, threads = form.threads](const KernelArguments& arguments) {
    const auto* indices = in<std::int64_t>(arguments, 1);
    for (std::int64_t i = 0; i < indexed; ++i)
      if (indices[i] < 0 || indices[i] >= slices.size) throw_out_of_range(indices[i], i, slices.size);
    const T* part = in<T>(arguments, 2);
    T* to = out<T>(arguments, 0);
    const std::size_t bytes = static_cast<std::size_t>(slices.outer * slices.size * slices.inner) * sizeof(T);
    if (to != arguments.in[0] && bytes > 0) std::memcpy(to, arguments.in[0], bytes);
    if (whole)
      combine_all<true>(to, indices, part, slices, threads, combine);
    else
      combine_all<false>(to, indices, part, slices, threads, combine);
  }};
}

/// The larger or the smaller of two numbers. NaN if a number is NaN.
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
        if (each < least || each >= size) throw_out_of_range(each, i, size);
        checked[i] = each < 0 ? each + size : each;
      }
    }};
  });
}

Kernel make_index_reduce(const KernelForm& form, bool whole) {
  const auto& reduce = form.get<std::string>("reduce");
  if (reduce == "set") {
    const auto last = [](auto, auto b) { return b; };
    switch (size_of(form.dtype(0))) {
      case 1:
        return combining<std::uint8_t>(form, whole, last);
      case 4:
        return combining<std::uint32_t>(form, whole, last);
      default:
        return combining<std::uint64_t>(form, whole, last);
    }
  }
  return with_number(form.dtype(0), [&](auto scalar) {
    using T = decltype(scalar);
    if (reduce == "prod")
      return combining<T>(form, whole, [](T a, T b) {
        return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
      });
    if (reduce == "amax") return combining<T>(form, whole, [](T a, T b) { return extreme<true>(a, b); });
    return combining<T>(form, whole, [](T a, T b) { return extreme<false>(a, b); });
  });
}

}  // namespace xtape
