/// Products by plain loops: integers, dot products, elementwise and outer products, and products too small for tiles.
#pragma once

#include <functional>

#include "kernels/elements/loops.hpp"

namespace xtape {

struct LoopsPlan {
  Loops<3> free;  ///< The axes of the result, with strides of a, b and c.
  Loops<2> sums;  ///< The summed axes, with strides of a and b.
  std::array<std::int64_t, 3> offsets{};
  bool accumulate = false;
  int threads = 1;
};

/// Sorts and merges the axes, and moves the axes with the fastest loops to the innermost positions.
void arrange(LoopsPlan& plan);

/// Estimates the nanoseconds on one thread, for an arranged plan.
double loops_cost(const LoopsPlan& plan);

/// The bytes of scratch for the partial sums of long dot products.
std::size_t loops_scratch_bytes(const LoopsPlan& plan, std::size_t element_bytes);

template <class T>
std::function<void(const T* a, const T* b, T* c, void* scratch)> make_loops(const LoopsPlan& plan);
extern template std::function<void(const float*, const float*, float*, void*)> make_loops(const LoopsPlan&);
extern template std::function<void(const double*, const double*, double*, void*)> make_loops(const LoopsPlan&);
extern template std::function<void(const std::uint32_t*, const std::uint32_t*, std::uint32_t*, void*)> make_loops(
    const LoopsPlan&);
extern template std::function<void(const std::uint64_t*, const std::uint64_t*, std::uint64_t*, void*)> make_loops(
    const LoopsPlan&);

}  // namespace xtape
