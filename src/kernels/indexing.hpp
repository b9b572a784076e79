/// Gathers and scatter-adds slices or elements by an array of indices. All arrays are dense.
#pragma once

#include <cstdint>

#include "xtape/array.hpp"

namespace xtape {

/// An array viewed as [outer, axis, inner], and the number of indices along `axis`.
struct Picking {
  std::int64_t outer = 1;
  std::int64_t axis = 1;
  std::int64_t inner = 1;
  std::int64_t picked = 1;
};

/// The first index outside [0, size), if there is one; `place` is its flat position in the array of indices.
template <class Index>
struct Stray {
  bool found = false;
  Index index = 0;
  std::int64_t place = 0;
};
template <class Index>
Stray<Index> first_stray(const Index* indices, std::int64_t count, std::int64_t size);

/// out[o, p, i] = x[o, indices[p], i]; an element has `bytes` bytes.
template <class Index>
void take_slices(const void* x, const Index* indices, void* out, const Picking& picking, std::size_t bytes,
                 int threads);

/// out[o, indices[p], i] += part[o, p, i], in the order of p.
template <class T, class Index>
void add_slices(T* out, const Index* indices, const T* part, const Picking& picking, int threads);

/// out[o, p, i] = x[o, indices[o, p, i], i]; an element has `bytes` bytes.
template <class Index>
void take_elements(const void* x, const Index* indices, void* out, const Picking& picking, std::size_t bytes,
                   int threads);

/// out[o, indices[o, p, i], i] += part[o, p, i], in the order of p.
template <class T, class Index>
void add_elements(T* out, const Index* indices, const T* part, const Picking& picking, int threads);

}  // namespace xtape
