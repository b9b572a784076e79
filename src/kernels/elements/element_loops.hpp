/// Loops that compute element by element.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "kernels/elements/scalar.hpp"
#include "xtape/op/kernel.hpp"

namespace xtape {

/// Up to this many numbers are computed one by one. A vectorised loop takes longer to begin, and waits for elements
/// that were written one by one. Only float64 has these one-by-one loops, because programs with few numbers use
/// float64, and each additional loop makes the code larger.
inline constexpr std::int64_t few_elements = 4;

/// An operand of type T with an element for each element of the output.
template <class T>
struct Each {
  using Element = T;
  const ReadAs<T>* from;
  explicit Each(const void* data) : from(static_cast<const ReadAs<T>*>(data)) {}
  T operator[](std::int64_t i) const { return static_cast<T>(from[i]); }
};
/// An operand with one element for all elements of the output.
template <class T>
struct Single {
  using Element = T;
  T element;
  explicit Single(const void* data) : element(*static_cast<const T*>(data)) {}
  T operator[](std::int64_t /*i*/) const { return element; }
};

/// Applies `f` to operands of types In..., element by element. For arithmetic that the compiler can vectorise.
template <class Out, class... In, class F>
void apply_to(const F& f, const Tile& tile) {
  const auto run = [&]<std::size_t... each>(std::index_sequence<each...>) {
    const auto over = [&f, count = tile.count](Out* to, const In... from) {
      if constexpr ((std::is_same_v<typename In::Element, double> || ...))
        if (count <= few_elements) {
          for (std::int64_t i = 0; i < count; ++i) {
            to[i] = static_cast<Out>(f(from[i]...));
            asm volatile("" : "+r"(i));  // keeps the compiler from vectorising the loop
          }
          return;
        }
#pragma omp simd
      for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<Out>(f(from[i]...));
    };
    over(static_cast<Out*>(tile.out[0]), In(tile.in[each])...);
  };
  run(std::index_sequence_for<In...>{});
}

/// Returns the loop that applies `f`.
template <class Out, class... In, class F>
TileFunction loop_over(const F& f) {
  if constexpr (std::is_empty_v<F>)  // a plain function costs half as much to compile as a function object
    return +[](const Tile& tile) { apply_to<Out, In...>(F{}, tile); };
  else
    return [f](const Tile& tile) { apply_to<Out, In...>(f, tile); };
}
/// Like loop_over, for operands with an element for each element of the output.
template <class Out, class... In, class F>
TileFunction loop(const F& f) {
  return loop_over<Out, Each<In>...>(f);
}

}  // namespace xtape
