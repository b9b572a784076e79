#include "indexing.hpp"

#include <cstring>

#include "scalar.hpp"
#include "threads.hpp"

namespace xtape {

namespace {
constexpr std::int64_t elements_a_thread = 8192;  // waking a thread for fewer does not pay

/// Calls body(o, i) for each column of [outer, axis, inner]. Each column is on one thread, so additions to it keep
/// their order.
template <class Body>
void each_column(const Picking& picking, int threads, const Body& body) {
  const std::int64_t columns = picking.outer * picking.inner;
  const std::int64_t grain = elements_a_thread / std::max<std::int64_t>(1, picking.picked) + 1;
  parallel_for(threads, columns, grain, [&](std::int64_t begin, std::int64_t finish) {
    for (std::int64_t column = begin; column < finish; ++column) body(column / picking.inner, column % picking.inner);
  });
}
}  // namespace

template <class Index>
Stray<Index> first_stray(const Index* indices, std::int64_t count, std::int64_t size) {
  for (std::int64_t i = 0; i < count; ++i)
    if (indices[i] < 0 || indices[i] >= size) return {true, indices[i], i};
  return {};
}

template <class Index>
void take_slices(const void* x, const Index* indices, void* out, const Picking& picking, std::size_t bytes,
                 int threads) {
  const std::size_t slice = static_cast<std::size_t>(picking.inner) * bytes;
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

template <class T, class Index>
void add_slices(T* out, const Index* indices, const T* part, const Picking& picking, int threads) {
  // The work is split along the inner axis, so that equal indices are handled by one thread, in order.
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

template <class Index>
void take_elements(const void* x, const Index* indices, void* out, const Picking& picking, std::size_t bytes,
                   int threads) {
  const auto take = [&](auto element) {
    using T = decltype(element);
    const auto* from = static_cast<const T*>(x);
    auto* to = static_cast<T*>(out);
    each_column(picking, threads, [&](std::int64_t o, std::int64_t i) {
      for (std::int64_t p = 0; p < picking.picked; ++p) {
        const std::int64_t at = (o * picking.picked + p) * picking.inner + i;
        to[at] = from[(o * picking.axis + indices[at]) * picking.inner + i];
      }
    });
  };
  switch (bytes) {
    case 1:
      return take(std::uint8_t{});
    case 2:
      return take(std::uint16_t{});
    case 4:
      return take(std::uint32_t{});
    default:
      return take(std::uint64_t{});
  }
}

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

#define XTAPE_FOR_INDEX(Index)                                                                          \
  template Stray<Index> first_stray<Index>(const Index*, std::int64_t, std::int64_t);                   \
  template void take_slices<Index>(const void*, const Index*, void*, const Picking&, std::size_t, int); \
  template void take_elements<Index>(const void*, const Index*, void*, const Picking&, std::size_t, int);
#define XTAPE_FOR_BOTH(T, Index)                                                          \
  template void add_slices<T, Index>(T*, const Index*, const T*, const Picking&, int);    \
  template void add_elements<T, Index>(T*, const Index*, const T*, const Picking&, int);
#define XTAPE_FOR_SCALAR(T) XTAPE_FOR_BOTH(T, std::int32_t) XTAPE_FOR_BOTH(T, std::int64_t)
XTAPE_FOR_INDEX(std::int32_t)
XTAPE_FOR_INDEX(std::int64_t)
XTAPE_FOR_SCALAR(float)
XTAPE_FOR_SCALAR(double)
XTAPE_FOR_SCALAR(std::int32_t)
XTAPE_FOR_SCALAR(std::int64_t)

}  // namespace xtape
