/// Shared helpers of the elementwise ops.
#pragma once

#include <vector>

#include "ops/recording/by_name.hpp"
#include "xtape/op/op.hpp"

namespace xtape {

using ElementwiseGradient = Vars (*)(const GradientCall&);

/// Returns the shape to which all inputs broadcast. Throws ShapeError with the shapes if they do not broadcast.
inline Shape broadcast_inputs(const OpCall& call) {
  std::vector<Shape> shapes;
  for (const ValueType& input : call.inputs) shapes.push_back(input.shape);
  return broadcast_shapes(shapes);
}

/// Throws DtypeError if the first input is bool.
inline void require_numbers(const OpCall& call) {
  if (call.dtype(0) == Dtype::boolean)
    throw DtypeError("takes numbers, received bool: cast to a number first, or use the logical ops");
}

/// The shape rule of ops whose inputs broadcast together. The output has the dtype of the first input.
inline std::vector<ValueType> same_dtype(const OpCall& call) {
  return {{call.dtype(0), broadcast_inputs(call)}};
}
/// Like same_dtype, but rejects bool.
inline std::vector<ValueType> same_number_dtype(const OpCall& call) {
  require_numbers(call);
  return same_dtype(call);
}

}  // namespace xtape
