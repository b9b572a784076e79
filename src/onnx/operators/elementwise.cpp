#include "xtape/ops/elementwise.hpp"

#include <cmath>

#include "onnx/operators.hpp"
#include "xtape/ops.hpp"
#include "xtape/ops/activations.hpp"

namespace xtape::onnx {

namespace {
template <Var (*function)(const Argument&)>
Vars unary(NodeCall& node) {
  return {function(node.at(0))};
}

/// Returns the second operand. Before version 7, with `broadcast`, its first axis corresponds to axis `axis` of the
/// first operand.
Var second(NodeCall& node) {
  const Var& b = node.at(1);
  if (node.opset() >= 7 || !node.flag("broadcast", false) || !node.has("axis")) return b;
  const std::size_t axis = normal_axis(node.integer("axis"), node.at(0).rank());
  Shape shape = b.shape();
  while (shape.size() + axis < node.at(0).rank()) shape.push_back(1);
  return reshape(b, shape);
}

/// An arithmetic or a logical op of two operands.
template <auto function>
Vars binary(NodeCall& node) {
  return {function(node.at(0), second(node))};
}

/// An op of any number of operands, applied to two operands at a time.
template <Var (*function)(const Operand&, const Operand&)>
Vars several(NodeCall& node) {
  const Vars& operands = node.all();
  Var result = operands.front();
  for (std::size_t i = 1; i < operands.size(); ++i) result = function(result, operands[i]);
  return {result};
}

Vars mean_of_several(NodeCall& node) {
  return {several<add>(node).front() / static_cast<double>(node.size())};
}

/// Rounds quotients of integers towards 0, as C does.
Vars quotient(NodeCall& node) {
  const Var a = node.at(0), b = second(node);
  if (is_floating(a.dtype()) || is_floating(b.dtype())) return {div(a, b)};
  const Var down = floor_divide(a, b);
  const Var raised = logical_and(logical_xor(less(a, 0), less(b, 0)), not_equal(down * b, a));
  return {down + cast(raised, down.dtype())};
}

/// The result has the sign of b, or the sign of a with fmod.
Vars remainder(NodeCall& node) {
  const Var &a = node.at(0), &b = node.at(1);
  if (!node.flag("fmod", false)) return {mod(a, b)};
  if (is_floating(a.dtype())) return {sign(a) * mod(abs(a), abs(b))};
  const Var rest = mod(a, b);  // abs(a) would overflow for the smallest integer
  return {where(logical_and(rest != 0, (rest < 0) != (a < 0)), rest - b, rest)};
}

Vars power(NodeCall& node) {
  const Var base = node.at(0), exponent = second(node);
  if (!is_floating(base.dtype()) && !is_floating(exponent.dtype())) return {pow(base, exponent)};
  const Var x = wide(base);
  return {pow(x, cast(exponent, x.dtype()))};
}

Vars clipped(NodeCall& node) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Var x = node.at(0);
  if (node.opset() < 11) return {clip(x, node.real("min", -infinity), node.real("max", infinity))};
  if (node.has(1)) x = maximum(x, node.at(1));
  if (node.has(2)) x = minimum(x, node.at(2));
  return {x};
}

Vars infinite(NodeCall& node) {
  const Var& x = node.at(0);
  const bool negative = node.flag("detect_negative", true), positive = node.flag("detect_positive", true);
  Var result = isinf(x);
  if (!positive) result = logical_and(result, less(x, 0));
  if (!negative) result = logical_and(result, greater(x, 0));
  return {result};
}

Vars selu_of(NodeCall& node) {
  const bool old = node.opset() < 6;  // versions with rounded defaults
  const double alpha = node.real("alpha", old ? 1.6732 : 1.67326319217681884765625);
  return {elu(node.at(0), alpha) * node.real("gamma", old ? 1.0507 : 1.05070102214813232421875)};
}

Vars prelu_of(NodeCall& node) {
  const Var &x = node.at(0), &slope = node.at(1);
  if (node.opset() < 7) return {prelu(x, slope)};
  return {where(less(x, 0), slope * x, x)};
}

Vars hard_sigmoid(NodeCall& node) {
  return {clip(node.at(0) * node.real("alpha", 0.2) + node.real("beta", 0.5), 0, 1)};
}

Vars shrunk(NodeCall& node) {
  const Var x = wide(node.at(0));
  const double lambd = node.real("lambd", 0.5), bias = node.real("bias", 0);
  return {where(less(x, -lambd), x + bias, where(greater(x, lambd), x - bias, zeros_like(x)))};
}

Vars shifted(NodeCall& node) {
  const std::string direction = node.text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") node.fail("direction '" + direction + "' is not LEFT or RIGHT");
  return {(direction == "LEFT" ? bitwise_left_shift : bitwise_right_shift)(node.at(0), node.at(1))};
}

Vars converted(NodeCall& node) {
  const std::int64_t element = node.integer("to");
  node.ignore("saturate");  // applies only to 8-bit floats
  node.set_element(0, static_cast<Element>(element));
  return {cast(node.at(0), dtype_in(element, node.setting(), "the result"))};
}

/// Before version 13, all axes from `axis` on are merged into one.
template <Var (*function)(const Argument&, std::int64_t)>
Vars along_axis(NodeCall& node) {
  const Var& x = node.at(0);
  const bool old = node.opset() < 13;
  const std::int64_t axis = node.integer("axis", old ? 1 : -1);
  if (!old) return {function(x, axis)};
  const auto first = static_cast<std::size_t>(normal_axis(axis, x.rank()));
  const Shape front(x.shape().begin(), x.shape().begin() + first), back(x.shape().begin() + first, x.shape().end());
  return {reshape(function(reshape(x, {count_of(front), count_of(back)}), -1), x.shape())};
}

Var hardmax(const Argument& x, std::int64_t axis) {
  const std::int64_t size = x.size(axis);
  if (size == 0) return x;
  const auto last = static_cast<std::size_t>(normal_axis(axis, x.rank()));
  Axes order;  // the order that moves the last axis to `axis`
  for (std::size_t i = 0; i < x.rank(); ++i)
    order.push_back(static_cast<std::int64_t>(i < last ? i : i == last ? x.rank() - 1 : i - 1));
  return transpose(one_hot(argmax(x, axis), size, x.dtype()), order);
}
}  // namespace

const Operators& elementwise_operators() {
  static const Operators operators = {
      {"Abs", unary<abs>, 0, wraps},
      {"Acos", unary<acos>},
      {"Acosh", unary<acosh>},
      {"Add", binary<add>, 0, wraps},
      {"And", binary<logical_and>},
      {"Asin", unary<asin>},
      {"Asinh", unary<asinh>},
      {"Atan", unary<atan>},
      {"Atanh", unary<atanh>},
      {"BitShift", shifted, 0, wraps},
      {"BitwiseAnd", binary<bitwise_and>},
      {"BitwiseNot", unary<bitwise_not>, 0, wraps},
      {"BitwiseOr", binary<bitwise_or>},
      {"BitwiseXor", binary<bitwise_xor>},
      {"Cast", converted, own, wraps},
      {"CastLike",
       [](NodeCall& node) -> Vars {
         node.ignore("saturate");  // applies only to 8-bit floats
         return {cast(node.at(0), node.at(1).dtype())};
       },
       1, wraps},
      {"Ceil", unary<ceil>},
      {"Celu", [](NodeCall& node) -> Vars { return {celu(node.at(0), node.real("alpha", 1))}; }},
      {"Clip", clipped},
      {"Cos", unary<cos>},
      {"Cosh", unary<cosh>},
      {"Div", quotient},
      {"Elu", [](NodeCall& node) -> Vars { return {elu(node.at(0), node.real("alpha", 1))}; }},
      {"Equal", binary<equal>, own},
      {"Erf", unary<erf>},
      {"Exp", unary<exp>},
      {"Floor", unary<floor>},
      {"Gelu", [](NodeCall& node) -> Vars { return {gelu(node.at(0), node.text("approximate", "none"))}; }},
      {"Greater", binary<greater>, own},
      {"GreaterOrEqual", binary<greater_equal>, own},
      {"HardSigmoid", hard_sigmoid},
      {"HardSwish", unary<hardswish>},
      {"Hardmax", along_axis<hardmax>},
      {"Identity", [](NodeCall& node) -> Vars { return {node.at(0)}; }},
      {"IsInf", infinite, own},
      {"IsNaN", unary<isnan>, own},
      {"LeakyRelu", [](NodeCall& node) -> Vars { return {leaky_relu(node.at(0), node.real("alpha", 0.01))}; }},
      {"Less", binary<less>, own},
      {"LessOrEqual", binary<less_equal>, own},
      {"Log", unary<log>},
      {"LogSoftmax", along_axis<log_softmax>},
      {"Max", several<maximum>},
      {"Mean", mean_of_several},
      {"Min", several<minimum>},
      {"Mish", unary<mish>},
      {"Mod", remainder},
      {"Mul", binary<mul>, 0, wraps},
      {"Neg", unary<neg>, 0, wraps},
      {"Not", unary<logical_not>},
      {"Or", binary<logical_or>},
      {"PRelu", prelu_of, 0, wraps},
      {"Pow", power, 0, wraps},
      {"Reciprocal", [](NodeCall& node) -> Vars { return {1.0 / node.at(0)}; }},
      {"Relu",
       [](NodeCall& node) -> Vars {
         return {is_floating(node.at(0).dtype()) ? relu(node.at(0)) : maximum(node.at(0), 0)};
       }},
      {"Round", unary<round>},
      {"Selu", selu_of},
      {"Shrink", shrunk, 0, wraps},
      {"Sigmoid", unary<sigmoid>},
      {"Sign", unary<sign>},
      {"Sin", unary<sin>},
      {"Sinh", unary<sinh>},
      {"Softmax", along_axis<softmax>},
      {"Softplus", unary<softplus>},
      {"Softsign", unary<softsign>},
      {"Sqrt", unary<sqrt>},
      {"Sub", binary<sub>, 0, wraps},
      {"Sum", several<add>},
      {"Tan", unary<tan>},
      {"Tanh", unary<tanh>},
      {"ThresholdedRelu", [](NodeCall& node) -> Vars { return {threshold(node.at(0), node.real("alpha", 1), 0)}; }},
      {"Where", [](NodeCall& node) -> Vars { return {where(node.at(0), node.at(1), node.at(2))}; }, 1},
      {"Xor", binary<logical_xor>},
  };
  return operators;
}

}  // namespace xtape::onnx
