/// Shared helpers of the arithmetic ops.
#pragma once

#include <vector>

#include "ops/recording/op_helpers.hpp"

namespace xtape {

// Shared helpers of the elementwise ops.

using ElementwiseGradient = Vars (*)(const GradientCall&);
using ElementwiseRecord = Vars (*)(Tape&, const Op&, const Vars&, const Attributes&);

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

/// Defines an elementwise op of two numbers of one dtype that broadcast together. If there is no `gradient`, the op is
/// not differentiable.
inline Op binary(const char* name, const char* doc, ElementwiseGradient gradient, ElementwiseRecord record = nullptr) {
  Op op;
  op.name = name;
  op.doc = doc;
  op.inputs = {{"a"}, {"b"}};
  op.shape = same_number_dtype;
  op.lowering.tile = tile_by_name;
  op.gradient = gradient;
  op.record = record;
  op.differentiable = gradient != nullptr;

  return op;
}

/// Defines an elementwise op of two floats.
inline Op of_two(const char* name, const char* inputs, const char* doc, ElementwiseGradient gradient) {
  Op op = binary(name, doc, gradient);
  op.inputs = inputs_of(inputs);
  op.shape = same_dtype;
  return op;
}

/// An elementwise op of one array x. Its tile is the one of its name.
struct UnaryRow {
  const char* name;
  const char* doc;
  /// Returns the gradient, given the cotangent g and the value y. Null if no gradient flows.
  Var (*gradient)(const Var& g, const Var& x, const Var& y);
  Var (*expand)(const Var& x) = nullptr;
  ElementwiseRecord record = nullptr;
};
inline Op unary(const UnaryRow& row, const std::vector<InputSpec>& inputs = {{"x"}},
                ShapeRule shape = same_number_dtype) {
  Op op;
  op.name = row.name;
  op.doc = row.doc;
  op.inputs = inputs;
  op.shape = shape;
  op.lowering.tile = tile_by_name;
  op.record = row.record;
  op.differentiable = row.gradient != nullptr;
  if (op.differentiable)
    op.gradient = [gradient = row.gradient](const GradientCall& call) {
      return Vars{gradient(call.cotangent(), call.inputs[0], call.outputs[0])};
    };
  if (row.expand != nullptr)
    op.expand = [expand = row.expand](const ExpandCall& call) { return Vars{expand(call.inputs[0])}; };
  return op;
}
template <std::size_t n>
std::vector<Op> unary_ops(const UnaryRow (&rows)[n], const std::vector<InputSpec>& inputs = {{"x"}},
                          ShapeRule shape = same_number_dtype) {
  std::vector<Op> ops;
  for (const UnaryRow& row : rows) ops.push_back(unary(row, inputs, shape));
  return ops;
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
