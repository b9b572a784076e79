/// Arrays of random numbers with random layouts: axes in any order, gaps, and negative and zero strides.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "xtape/array.hpp"

namespace xtape {

/// Memory with a layout over it.
template <class T>
struct Scattered {
  std::vector<T> memory;
  Layout layout;

  T& at(const Shape& index) {
    std::int64_t offset = layout.offset;
    for (std::size_t i = 0; i < index.size(); ++i) offset += index[i] * layout.strides[i];
    return memory[static_cast<std::size_t>(offset)];
  }
};

/// Calls visit(index) for every index of a shape.
template <class Visit>
void for_each_index(const Shape& shape, const Visit& visit) {
  if (count_of(shape) == 0) return;
  Shape index = Shape::filled(shape.size(), 0);
  for (;;) {
    visit(index);
    std::size_t axis = shape.size();
    for (;;) {
      if (axis == 0) return;
      --axis;
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
    }
  }
}

/// The variations of a layout from which `scattered` may choose.
struct LayoutFreedom {
  bool reorders = true;
  bool gaps = true;
  bool reverses = true;
  bool repeats = false;  ///< Whether strides of 0 are allowed. False for arrays that are written.
};

template <class T>
Scattered<T> scattered(const Shape& shape, std::mt19937& random, LayoutFreedom freedom = {}) {
  const auto chance = [&](int one_in) { return random() % static_cast<unsigned>(one_in) == 0; };
  Scattered<T> result;
  result.layout = {shape, Strides::filled(shape.size(), 0), 0};
  std::vector<std::size_t> order(shape.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (freedom.reorders && chance(2)) std::shuffle(order.begin(), order.end(), random);
  std::int64_t span = freedom.gaps && chance(6) ? 2 : 1;
  std::int64_t offset = random() % 5;
  for (std::size_t i = order.size(); i-- > 0;) {
    const std::size_t axis = order[i];
    if (freedom.repeats && chance(8)) continue;
    const bool reversed = freedom.reverses && chance(8);
    result.layout.strides[axis] = reversed ? -span : span;
    if (reversed) offset += span * std::max<std::int64_t>(0, shape[axis] - 1);
    span = span * std::max<std::int64_t>(1, shape[axis]) + (freedom.gaps && chance(4) ? 1 + random() % 3 : 0);
  }
  result.layout.offset = offset;
  result.memory.resize(static_cast<std::size_t>(offset + span + 8));
  for (T& each : result.memory) each = static_cast<T>(static_cast<int>(random() % 17) - 8);
  return result;
}

}  // namespace xtape
