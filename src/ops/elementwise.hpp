/// Helpers shared by the elementwise ops: shape rules and constructors of tile functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "scalar.hpp"
#include "vector_math.hpp"
#include "xtape/op.hpp"

namespace xtape {

using GradientRule = Vars (*)(const GradientCall&);

/// The shape that all inputs broadcast to. Throws ShapeError, naming the shapes, if they do not broadcast.
inline Shape broadcast_inputs(const Call& call) {
  std::vector<Shape> shapes;
  for (const ValueType& input : call.inputs) shapes.push_back(input.shape);
  return broadcast_shapes(shapes);
}

/// Throws DtypeError if the first input is bool.
inline void require_numbers(const Call& call) {
  if (call.dtype(0) == Dtype::boolean)
    throw DtypeError("takes numbers, received bool: cast to a number first, or use the logical ops");
}

/// The shape rule of ops whose inputs broadcast together: the output has the dtype of the first input.
inline std::vector<ValueType> same_dtype(const Call& call) {
  return {{call.dtype(0), broadcast_inputs(call)}};
}
/// The same, and bool is refused.
inline std::vector<ValueType> same_number_dtype(const Call& call) {
  require_numbers(call);
  return same_dtype(call);
}

/// The type as which a loop reads elements of type T. Compilers do not vectorise loops that read bool.
template <class T>
using ReadAs = std::conditional_t<std::is_same_v<T, bool>, unsigned char, T>;

/// A tile function for inputs of types In... and an output of type Out that applies `f` to each element. Meant for
/// arithmetic that the compiler vectorises. The output may share memory with an input.
template <class Out, class... In, class F>
TileFunction loop_tile(const F& f) {
  return [f](const Tile& tile) {
    const auto run = [&]<std::size_t... each>(std::index_sequence<each...>) {
      const auto loop = [&f, &tile](Out* out, const ReadAs<In>*... in) {
        const std::int64_t count = tile.count;
#pragma omp simd
        for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<Out>(f(static_cast<In>(in[i])...));
      };
      loop(static_cast<Out*>(tile.out[0]), static_cast<const ReadAs<In>*>(tile.in[each])...);
    };
    run(std::index_sequence_for<In...>{});
  };
}

/// loop_tile for one input and an output of a number dtype that is chosen at run time. `f` is a generic lambda.
template <class F>
TileFunction unary_loop(Dtype dtype, const F& f) {
  return with_number(dtype, [&](auto scalar) { return loop_tile<decltype(scalar), decltype(scalar)>(f); });
}
/// The same for two inputs.
template <class F>
TileFunction binary_loop(Dtype dtype, const F& f) {
  return with_number(dtype,
                     [&](auto scalar) { return loop_tile<decltype(scalar), decltype(scalar), decltype(scalar)>(f); });
}

/// A tile function for n inputs of one float dtype that applies `f` to xsimd batches.
template <std::size_t n, class F>
TileFunction vector_tile(Dtype dtype, const F& f) {
  const auto make = [&f](auto scalar) -> TileFunction {
    using T = decltype(scalar);
    return [f](const Tile& tile) {
      std::array<const T*, n> in;
      for (std::size_t k = 0; k < n; ++k) in[k] = static_cast<const T*>(tile.in[k]);
      vector_math::map_vectors(in, static_cast<T*>(tile.out[0]), tile.count, f);
    };
  };
  return dtype == Dtype::float64 ? make(double{}) : make(float{});
}

}  // namespace xtape
