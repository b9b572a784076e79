#include "cost.hpp"

#include <algorithm>

#include "equation.hpp"

namespace xtape {

namespace {

/// How many elements lie in memory: those that a stride of 0 repeats count once.
double elements(const Layout& layout) {
  double count = 1;
  for (std::size_t axis = 0; axis < layout.shape.size(); ++axis)
    if (layout.strides[axis] != 0 || layout.shape[axis] == 0) count *= static_cast<double>(layout.shape[axis]);
  return count;
}

double bytes(Dtype dtype, const Layout& layout) {
  return elements(layout) * static_cast<double>(size_of(dtype));
}

/// Of the product of two that einsum's nodes are.
double product_flops(const KernelCall& call) {
  const std::vector<Shape> shapes = {call.inputs[0].shape, call.inputs[1].shape};
  const std::string& text = call.text("equation");
  const Equation equation = parse_equation(text, shapes);
  const std::vector<std::int64_t> sizes = sizes_of_letters(equation, shapes, text);
  std::string letters = equation.operands[0];
  for (const char letter : equation.operands[1])
    if (!has(letters, letter)) letters += letter;
  double terms = 1;
  for (const char letter : letters) terms *= static_cast<double>(sizes[static_cast<unsigned char>(letter)]);
  return 2 * terms;
}

/// Whether the op picks elements of its first input, and reads no others.
bool picks(const Op& op) {
  return &op == &builtin_ops().at("take") || &op == &builtin_ops().at("gather");
}

}  // namespace

Cost cost_of(const KernelCall& call) {
  Cost cost;
  for (std::size_t k = 0; k < call.out.size(); ++k) cost.bytes += bytes(call.outputs[k].dtype, call.out[k]);
  const double written = cost.bytes;
  for (std::size_t k = 0; k < call.in.size(); ++k) {
    const double held = bytes(call.dtype(k), call.in[k]);
    cost.bytes += k == 0 && picks(call.op) ? std::min(held, written) : held;
  }
  if (call.op.kind == Kind::product) cost.flops = product_flops(call);
  return cost;
}

Cost cost_of_copy(const ValueType& type, const Layout& from) {
  return {0, bytes(type.dtype, from) +
                 static_cast<double>(count_of(type.shape)) * static_cast<double>(size_of(type.dtype))};
}

}  // namespace xtape
