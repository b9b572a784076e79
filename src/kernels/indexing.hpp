/// Reading and adding to slices or elements that an array of indices names. All arrays are dense.
#pragma once

#include <cstdint>

#include "xtape/array.hpp"

namespace xtape {

/// An array seen as [outer, axis, inner], and `picked` indices along its axis.
struct Picking {
  std::int64_t outer = 1;
  std::int64_t axis = 1;
  std::int64_t inner = 1;
  std::int64_t picked = 1;
};

/// The first index outside [0, size), if any. The place is its flat position.
template <class Index>
struct Stray {
  bool found = false;
  Index index = 0;
  std::int64_t place = 0;
};
template <class Index>
Stray<Index> first_stray(const Index* indices, std::int64_t count, std::int64_t size);

/// out[o, p, i] = x[o, indices[p], i]; elements of `bytes` bytes.
template <class Index>
void take_slices(const void* x, const Index* indices, void* out, const Picking& picking, std::size_t bytes, int threads);

/// out[o, indices[p], i] += part[o, p, i], in the order of p.
template <class T, class Index>
void add_slices(T* out, const Index* indices, const T* part, const Picking& picking, int threads);

/// out[o, p, i] = x[o, indices[o, p, i], i].
template <class T, class Index>
void take_elements(const T* x, const Index* indices, T* out, const Picking& picking, int threads);

/// out[o, indices[o, p, i], i] += part[o, p, i], in the order of p.
template <class T, class Index>
void add_elements(T* out, const Index* indices, const T* part, const Picking& picking, int threads);

}  // namespace xtape
