// Gathers and scatter-adds slices or elements by an array of indices. All arrays are dense.

#include <cstring>

#include "base/arrays/lengths.hpp"
#include "base/threads/threads.hpp"
#include "kernels/elements/scalar.hpp"
#include "kernels/table/kernel_form.hpp"

namespace xtape {

namespace {
constexpr std::int64_t elements_a_thread = 8192;  // for fewer elements, waking another thread does not pay off

/// An array viewed as [outer, axis, inner], and the number of indices along `axis`.
struct Picking {
  std::int64_t outer = 1;
  std::int64_t axis = 1;
  std::int64_t inner = 1;
  std::int64_t picked = 1;
};

/// Calls body(o, i) for each column of [outer, axis, inner]. A single thread processes each column, so additions to a
/// column keep their order.
template <class Body>
void each_column(const Picking& picking, int threads, const Body& body) {
  const std::int64_t columns = picking.outer * picking.inner;
  const std::int64_t grain = elements_a_thread / std::max<std::int64_t>(1, picking.picked) + 1;
  parallel_for(threads, columns, grain, [&](std::int64_t begin, std::int64_t finish) {
    std::int64_t o = begin / picking.inner, i = begin % picking.inner;
    for (std::int64_t column = begin; column < finish; ++column) {
      body(o, i);
      if (++i < picking.inner) continue;
      i = 0;
      ++o;
    }
  });
}

/// Calls f(T{}) with an unsigned integer type T of `bytes` bytes.
template <class F>
void with_bytes(std::size_t bytes, const F& f) {
  switch (bytes) {
    case 1:
      return f(std::uint8_t{});
    case 2:
      return f(std::uint16_t{});
    case 4:
      return f(std::uint32_t{});
    default:
      return f(std::uint64_t{});
  }
}

/// out[o, p] = x[o, indices[p]] for slices of one element. Calls of memcpy would take several times as long.
template <class T, class Index>
void take_single(const T* from, const Index* indices, T* to, const Picking& picking, int threads) {
  const std::int64_t all = picking.outer * picking.picked;
  parallel_for(threads, all, elements_a_thread, [&](std::int64_t begin, std::int64_t finish) {
    while (begin < finish) {
      const std::int64_t o = begin / picking.picked, first = begin % picking.picked;
      const std::int64_t last = std::min(picking.picked, first + finish - begin);
      const T* row = from + o * picking.axis;
      T* out = to + o * picking.picked;
      for (std::int64_t p = first; p < last; ++p) out[p] = row[indices[p]];
      begin += last - first;
    }
  });
}

/// out[o, p, i] = x[o, indices[p], i]. Each slice [i] has `slice` bytes.
template <class Index>
void take_slices(const void* x, const Index* indices, void* out, const Picking& picking, std::size_t slice,
                 int threads) {
  if (picking.inner == 1)
    return with_bytes(slice, [&](auto element) {
      using T = decltype(element);
      take_single(static_cast<const T*>(x), indices, static_cast<T*>(out), picking, threads);
    });
  const auto* from = static_cast<const std::byte*>(x);
  auto* to = static_cast<std::byte*>(out);
  const std::int64_t grain = elements_a_thread / std::max<std::int64_t>(1, picking.inner) + 1;
  parallel_for(threads, picking.outer * picking.picked, grain, [&](std::int64_t begin, std::int64_t finish) {
    for (std::int64_t row = begin; row < finish; ++row) {
      const std::int64_t source = row / picking.picked * picking.axis + indices[row % picking.picked];
      std::memcpy(to + static_cast<std::size_t>(row) * slice, from + static_cast<std::size_t>(source) * slice, slice);
    }
  });
}

/// out[o, indices[p], i] += part[o, p, i], in the order of p.
template <class T, class Index>
void add_slices(T* out, const Index* indices, const T* part, const Picking& picking, int threads) {
  // Each thread adds all parts to its own range of the inner axis. Parts with equal indices are therefore added in
  // order.
  const std::int64_t grain =
      elements_a_thread / std::max<std::int64_t>(1, picking.outer * picking.picked) / 16 * 16 + 16;
  parallel_for(threads, picking.inner, grain, [&](std::int64_t begin, std::int64_t finish) {
    for (std::int64_t o = 0; o < picking.outer; ++o)
      for (std::int64_t p = 0; p < picking.picked; ++p) {
        T* to = out + (o * picking.axis + indices[p]) * picking.inner;
        const T* from = part + (o * picking.picked + p) * picking.inner;
        for (std::int64_t i = begin; i < finish; ++i) to[i] = wrapping_sum(to[i], from[i]);
      }
  });
}

/// out[o, p, i] = x[o, indices[o, p, i], i]. Each element has `bytes` bytes.
template <class Index>
void take_elements(const void* x, const Index* indices, void* out, const Picking& picking, std::size_t bytes,
                   int threads) {
  with_bytes(bytes, [&](auto element) {
    using T = decltype(element);
    const auto* from = static_cast<const T*>(x);
    auto* to = static_cast<T*>(out);
    each_column(picking, threads, [&](std::int64_t o, std::int64_t i) {
      for (std::int64_t p = 0; p < picking.picked; ++p) {
        const std::int64_t at = (o * picking.picked + p) * picking.inner + i;
        to[at] = from[(o * picking.axis + indices[at]) * picking.inner + i];
      }
    });
  });
}

/// out[o, indices[o, p, i], i] += part[o, p, i], in the order of p.
template <class T, class Index>
void add_elements(T* out, const Index* indices, const T* part, const Picking& picking, int threads) {
  each_column(picking, threads, [&](std::int64_t o, std::int64_t i) {
    for (std::int64_t p = 0; p < picking.picked; ++p) {
      const std::int64_t at = (o * picking.picked + p) * picking.inner + i;
      T& to = out[(o * picking.axis + indices[at]) * picking.inner + i];
      to = wrapping_sum(to, part[at]);
    }
  });
}

/// Throws Error if an index is outside [0, size), where `size` is the size of the input `of` along the axis.
template <class Index>
void require_in_range(const char* op, const Index* indices, std::int64_t count, const char* of, std::int64_t size) {
  bool wrong = false;
#pragma omp simd reduction(|| : wrong)
  for (std::int64_t i = 0; i < count; ++i) wrong = wrong || indices[i] < 0 || indices[i] >= size;
  for (std::int64_t i = 0; wrong && i < count; ++i)
    if (indices[i] < 0 || indices[i] >= size)
      throw Error(std::string(op) + ": index " + std::to_string(indices[i]) + " (at flat position " +
                  std::to_string(i) + ") is out of range: " + of + " has size " + std::to_string(size) +
                  " along the axis");
}

/// The kernel of an op with indices as input 1. Checks the indices and calls run(arguments, indices, picking, threads).
/// If `by_slice`, each index selects a slice of x. Otherwise, each index selects one element.
template <class Run>
Kernel picking_kernel(const char* op, bool by_slice, const KernelForm& form, const Run& run) {
  const Shape& x = form.shape(0);
  const std::size_t at = normal_axis(form.get<std::int64_t>("axis"), x.size());
  const std::int64_t count = count_of(form.shape(1));
  Picking picking;
  for (std::size_t i = 0; i < x.size(); ++i) (i < at ? picking.outer : i > at ? picking.inner : picking.axis) *= x[i];
  picking.picked = by_slice ? count : form.shape(1)[at];
  return with_index(form.dtype(1), [&](auto index) {
    using Index = decltype(index);
    return Kernel{[=, threads = form.threads](const KernelArguments& arguments) {
      const auto* indices = in<Index>(arguments, 1);
      require_in_range(op, indices, count, "x", picking.axis);
      run(arguments, indices, picking, threads);
    }};
  });
}

Kernel make_take(const KernelForm& form) {
  return picking_kernel("take", true, form,
                        [dtype = form.dtype(0)](const KernelArguments& arguments, const auto* indices,
                                                const Picking& picking, int threads) {
                          const auto slice = static_cast<std::size_t>(bytes_of(dtype, picking.inner));
                          take_slices(arguments.in[0], indices, arguments.out[0], picking, slice, threads);
                        });
}
Kernel make_gather(const KernelForm& form) {
  return picking_kernel("gather", false, form,
                        [bytes = size_of(form.dtype(0))](const KernelArguments& arguments, const auto* indices,
                                                         const Picking& picking, int threads) {
                          take_elements(arguments.in[0], indices, arguments.out[0], picking, bytes, threads);
                        });
}

/// The kernel of index_add or scatter_add. Copies x to the output unless both share memory. Then adds input 2, the
/// part, to the output at the indices.
Kernel make_adding(const char* op, bool by_slice, const KernelForm& form) {
  const std::size_t bytes = static_cast<std::size_t>(count_of(form.shape(0))) * size_of(form.dtype(0));
  return with_number(form.dtype(0), [&](auto scalar) {
    using T = decltype(scalar);
    return picking_kernel(
        op, by_slice, form,
        [=](const KernelArguments& arguments, const auto* indices, const Picking& picking, int threads) {
          T* to = out<T>(arguments, 0);
          if (to != arguments.in[0] && bytes > 0) std::memcpy(to, arguments.in[0], bytes);
          if (by_slice)
            add_slices(to, indices, in<T>(arguments, 2), picking, threads);
          else
            add_elements(to, indices, in<T>(arguments, 2), picking, threads);
        });
  });
}

/// Indices of either dtype.
struct Indices {
  const void* data = nullptr;
  bool wide = false;  // whether they are int64
  std::int64_t operator[](std::int64_t i) const {
    return wide ? static_cast<const std::int64_t*>(data)[i] : static_cast<const std::int32_t*>(data)[i];
  }
};

/// Bags of `picked` rows each. The rows have `inner` elements.
struct Bags {
  std::int64_t count = 1, picked = 1, inner = 1;
};

/// to[i] is the sum of factors[k] * x[indices[k], i] over the rows k in [first, last), in this order. Without factors,
/// each factor is `share`.
template <class T, class Length>
void add_rows(const T* x, const Indices& indices, const T* factors, T share, std::int64_t first, std::int64_t last,
              Length length, T* to) {
  std::fill_n(to, static_cast<std::size_t>(length), T{0});
  for (std::int64_t k = first; k < last; ++k) {
    const T* from = x + indices[k] * length;
    const T factor = factors != nullptr ? factors[k] : share;
#pragma omp simd
    for (std::int64_t i = 0; i < length; ++i) to[i] += factor * from[i];
  }
}

/// out[b] is the sum of the rows of bag b.
template <class T>
void add_bags(const T* x, const Indices& indices, const T* factors, T share, T* out, const Bags& bags, int threads) {
  const std::int64_t grain = elements_a_thread / std::max<std::int64_t>(1, bags.picked * bags.inner) + 1;
  parallel_for(threads, bags.count, grain, [=](std::int64_t begin, std::int64_t finish) {
    with_length(bags.inner, [&](auto length) {
      for (std::int64_t b = begin; b < finish; ++b)
        add_rows(x, indices, factors, share, b * bags.picked, (b + 1) * bags.picked, length, out + b * length);
    });
  });
}

Kernel make_embedding_bag(const KernelForm& form) {
  const Shape &indices = form.shape(0), &weight = form.shape(1);
  const std::int64_t all = count_of(indices), size = weight[0];
  const bool has_factors = form.inputs.size() > 2;
  Bags bags;
  bags.picked = indices.back();
  for (std::size_t i = 0; i + 1 < indices.size(); ++i) bags.count *= indices[i];
  for (std::size_t i = 1; i < weight.size(); ++i) bags.inner *= weight[i];
  const std::int64_t shares = form.get<std::string>("mode") == "mean" ? std::max<std::int64_t>(1, bags.picked) : 1;
  return with_floating(form.dtype(1), [&](auto scalar) {
    using T = decltype(scalar);
    return Kernel{[=, threads = form.threads, dtype = form.dtype(0)](const KernelArguments& arguments) {
      with_index(dtype, [&](auto index) {
        require_in_range("embedding_bag", in<decltype(index)>(arguments, 0), all, "weight", size);
      });
      add_bags(in<T>(arguments, 1), {arguments.in[0], dtype == Dtype::int64}, in<T>(arguments, 2, has_factors),
               T{1} / static_cast<T>(shares), out<T>(arguments, 0), bags, threads);
    }};
  });
}
}  // namespace

KernelList list_indexing() {
  return {{"take", make_take},
          {"gather", make_gather},
          {"embedding_bag", make_embedding_bag},
          {"index_add", [](const KernelForm& form) { return make_adding("index_add", true, form); }},
          {"scatter_add", [](const KernelForm& form) { return make_adding("scatter_add", false, form); }}};
}

}  // namespace xtape
