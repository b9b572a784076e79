/// Shared helpers of the arithmetic ops.
#pragma once

#include <vector>

#include "ops/recording/op_helpers.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"

namespace xtape {

// Shared helpers of the elementwise ops.

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

/// Defines an elementwise op of two numbers of one dtype that broadcast together.
inline Op binary(const char* name, const char* doc, ElementwiseGradient gradient) {
  Op op;
  op.name = name;
  op.doc = doc;
  op.inputs = {{"a"}, {"b"}};
  op.shape = same_number_dtype;
  op.lowering.tile = tile_by_name;
  op.gradient = gradient;
  op.lowering.overwrites = {0, 1};
  return op;
}

/// Defines an elementwise op of one number. If there is no `gradient`, the op is not differentiable.
inline Op unary(const char* name, const char* doc, ElementwiseGradient gradient) {
  Op op;
  op.name = name;
  op.doc = doc;
  op.inputs = {{"x"}};
  op.shape = same_number_dtype;
  op.lowering.tile = tile_by_name;
  op.gradient = gradient;
  op.differentiable = gradient != nullptr;
  op.lowering.overwrites = {0};
  return op;
}

/// Returns the gradients of a broadcasting binary op. `to_a` and `to_b` record the gradients in the shape of the
/// output. Each gradient is then summed to the shape of its input. `to_a` is called only if a needs a gradient, and
/// `to_b` only if b does.
template <class A, class B>
Vars per_operand(const GradientCall& call, const A& to_a, const B& to_b) {
  Vars gradients(2);
  if (call.needs[0]) gradients[0] = sum_to(to_a(), call.inputs[0].shape());
  if (call.needs[1]) gradients[1] = sum_to(to_b(), call.inputs[1].shape());
  return gradients;
}

}  // namespace xtape
