/// Nested loops over several strided arrays of one shape.
#pragma once

#include <array>
#include <cstdint>

#include "xtape/array.hpp"

namespace xtape {

/// The axes of N arrays of one shape as nested loops, outermost first. Strides are in elements.
template <std::size_t N>
struct Loops {
  Shape sizes;
  std::array<Strides, N> strides;

  std::size_t rank() const { return sizes.size(); }
  std::int64_t count() const { return count_of(sizes); }

  void add(std::int64_t size, const std::array<std::int64_t, N>& steps) {
    sizes.push_back(size);
    for (std::size_t k = 0; k < N; ++k) strides[k].push_back(steps[k]);
  }
  void erase(std::size_t axis) {
    sizes.erase(axis);
    for (Strides& each : strides) each.erase(axis);
  }
  void swap(std::size_t a, std::size_t b) {
    std::swap(sizes[a], sizes[b]);
    for (Strides& each : strides) std::swap(each[a], each[b]);
  }

  /// Sorts the axes so that the absolute strides of array `k` decrease from the outermost to the innermost.
  void sort_by(std::size_t k) {
    const auto size_of_step = [&](std::size_t axis) {
      return strides[k][axis] < 0 ? -strides[k][axis] : strides[k][axis];
    };
    for (std::size_t i = 1; i < rank(); ++i)
      for (std::size_t j = i; j > 0 && size_of_step(j - 1) < size_of_step(j); --j) swap(j - 1, j);
  }
  /// Removes axes of size 1, and merges neighbouring axes that are equivalent to one longer axis in every array.
  void merge() {
    for (std::size_t i = rank(); i-- > 0;)
      if (sizes[i] == 1) erase(i);
    for (std::size_t i = rank(); i-- > 1;) {
      bool runs_on = true;
      for (const Strides& each : strides) runs_on = runs_on && each[i - 1] == each[i] * sizes[i];
      if (!runs_on) continue;
      const std::int64_t size = sizes[i - 1];
      sizes[i] *= size;
      erase(i - 1);
    }
  }

  /// For each array, the offset of the element with flat index `flat` over the first `axes` axes.
  std::array<std::int64_t, N> offsets(std::int64_t flat, std::size_t axes) const {
    std::array<std::int64_t, N> result{};
    for (std::size_t i = axes; i-- > 0;) {
      const std::int64_t rest = i > 0 ? flat / sizes[i] : 0;  // axis 0 needs no division, which is slow
      for (std::size_t k = 0; k < N; ++k) result[k] += (flat - rest * sizes[i]) * strides[k][i];
      flat = rest;
    }
    return result;
  }
};

/// Layouts of one shape as loops, in the order of their axes. Does not merge axes.
template <class... Layouts>
Loops<sizeof...(Layouts)> loops_over(const Layouts&... layouts) {
  Loops<sizeof...(Layouts)> loops;
  const std::array<const Layout*, sizeof...(Layouts)> all{&layouts...};
  for (std::size_t i = 0; i < all[0]->shape.size(); ++i) {
    std::array<std::int64_t, sizeof...(Layouts)> steps;
    for (std::size_t k = 0; k < all.size(); ++k) steps[k] = all[k]->strides[i];
    loops.add(all[0]->shape[i], steps);
  }
  return loops;
}

}  // namespace xtape
