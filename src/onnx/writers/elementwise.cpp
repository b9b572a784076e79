// Elementwise ops.
#include <algorithm>
#include <cmath>

#include "writing.hpp"

namespace xtape::onnx {

namespace {
Names numbers(const WriteCall& call) {
  Names operands;
  for (std::size_t i = 0; i < call.inputs.size(); ++i)
    operands.push_back(call.cast(call.inputs[i], call.types[i].dtype, number_dtype(call.types[i].dtype)));
  return operands;
}

/// Applies the row's operator to the operands as numbers. Casts the result to the dtype of the call.
Names of_numbers(const WriteCall& call) {
  const std::string y = call.add(call.row->name, numbers(call));
  return {call.cast(y, number_dtype(call.types[0].dtype), call.type().dtype)};
}

/// Applies the row's operator to floats. Integers stay unchanged.
Names of_floats(const WriteCall& call) {
  return {is_floating(call.types[0].dtype) ? call.add(call.row->name, call.inputs) : call.inputs[0]};
}

/// Writes comparisons. Their result is bool.
Names compared(const WriteCall& call) {
  return {call.add(call.row->name, numbers(call))};
}

/// Writes the row's operator with the operands of the call.
Names direct(const WriteCall& call) {
  return {call.add(call.row->name, call.inputs)};
}

Names not_equal(const WriteCall& call) {
  return {call.add("Not", {call.add("Equal", numbers(call))})};
}

/// Returns whether the remainder and the divisor have different signs. The quotient was then rounded up.
std::string rounded_up(const WriteCall& call, const std::string& rest, const std::string& divisor,
                       const std::string& zero) {
  const std::string signs = call.add("Xor", {call.add("Less", {rest, zero}), call.add("Less", {divisor, zero})});
  return call.add("And", {signs, call.add("Not", {call.add("Equal", {rest, zero})})});
}

/// The divisor of an integer division, with 1 in place of 0. The result for a divisor of 0 is then set to 0.
struct Divisor {
  std::string zero, is_zero, number;
  Divisor(const WriteCall& call, const std::string& b, Dtype dtype)
      : zero(call.scalar(0, dtype)),
        is_zero(call.add("Equal", {b, zero})),
        number(call.add("Where", {is_zero, call.scalar(1, dtype), b})) {}
};

Names floor_divide(const WriteCall& call) {
  const Dtype dtype = number_dtype(call.types[0].dtype);
  const Names ab = numbers(call);
  if (is_floating(dtype)) return {call.add("Floor", {call.add("Div", ab)})};
  const Divisor by(call, ab[1], dtype);
  const std::string quotient = call.add("Div", {ab[0], by.number});
  const std::string rest = call.add("Sub", {ab[0], call.add("Mul", {quotient, by.number})});
  const std::string down = call.cast(rounded_up(call, rest, by.number, by.zero), dtype);
  const std::string y = call.add("Where", {by.is_zero, by.zero, call.add("Sub", {quotient, down})});
  return {call.cast(y, dtype, call.type().dtype)};
}

Names mod(const WriteCall& call) {
  const Dtype dtype = number_dtype(call.types[0].dtype);
  const Names ab = numbers(call);
  if (!is_floating(dtype)) {
    const Divisor by(call, ab[1], dtype);
    const std::string y = call.add("Where", {by.is_zero, by.zero, call.add("Mod", {ab[0], by.number})});
    return {call.cast(y, dtype, call.type().dtype)};
  }
  const std::string rest = call.add("Mod", ab, {{"fmod", 1}}), zero = call.scalar(0, dtype);
  return {call.add("Where", {rounded_up(call, rest, ab[1], zero), call.add("Add", {rest, ab[1]}), rest})};
}

Names trunc(const WriteCall& call) {
  if (!is_floating(call.types[0].dtype)) return {call.inputs[0]};
  return {call.add("Mul", {call.add("Sign", call.inputs), call.add("Floor", {call.add("Abs", call.inputs)})})};
}

Names log_to_base(const WriteCall& call, double base) {
  return {call.add("Div", {call.add("Log", call.inputs), call.scalar(std::log(base), call.type().dtype)})};
}

/// log(u) * x / (u - 1) with u = 1 + x, so that the rounding errors cancel (Kahan). The result is x itself if u is 1 or
/// infinite.
Names log1p(const WriteCall& call) {
  const std::string& x = call.inputs[0];
  const std::string one = call.scalar(1, call.type().dtype), u = call.add("Add", {x, one});
  const std::string same =
      call.add("Or", {call.add("Equal", {u, one}), call.add("Equal", {u, call.scalar(INFINITY, call.type().dtype)})});
  const std::string ratio = call.add("Div", {x, call.add("Sub", {u, one})});
  return {call.add("Where", {same, x, call.add("Mul", {call.add("Log", {u}), ratio})})};
}

/// tanh(x / 2) * (exp(x) + 1), accurate near 0.
Names expm1(const WriteCall& call) {
  const std::string half = call.add("Mul", {call.inputs[0], call.scalar(0.5, call.type().dtype)});
  const std::string more = call.add("Add", {call.add("Exp", call.inputs), call.scalar(1, call.type().dtype)});
  return {call.add("Mul", {call.add("Tanh", {half}), more})};
}

/// The arc tangent of y / x, shifted by pi for negative x. The result at the origin is 0.
Names atan2(const WriteCall& call) {
  const std::string &y = call.inputs[0], &x = call.inputs[1];
  const Dtype dtype = call.type().dtype;
  const std::string zero = call.scalar(0, dtype), pi = call.scalar(M_PI, dtype);
  const std::string half_turn = call.add("Where", {call.add("Less", {y, zero}), call.add("Neg", {pi}), pi});
  const std::string turn = call.add("Where", {call.add("Less", {x, zero}), half_turn, zero});
  const std::string angle = call.add("Atan", {call.add("Div", {y, x})});
  const std::string origin = call.add("And", {call.add("Equal", {x, zero}), call.add("Equal", {y, zero})});
  return {call.add("Where", {origin, zero, call.add("Add", {angle, turn})})};
}

/// The larger number times sqrt(1 + ratio * ratio). The intermediate values do not overflow.
Names hypot(const WriteCall& call) {
  const Dtype dtype = call.type().dtype;
  const Names sizes = {call.add("Abs", {call.inputs[0]}), call.add("Abs", {call.inputs[1]})};
  const std::string zero = call.scalar(0, dtype), one = call.scalar(1, dtype), larger = call.add("Max", sizes);
  const std::string safe = call.add("Where", {call.add("Equal", {larger, zero}), one, larger});
  const std::string ratio = call.add("Div", {call.add("Min", sizes), safe});
  const std::string root = call.add("Sqrt", {call.add("Add", {one, call.add("Mul", {ratio, ratio})})});
  return {call.add("Mul", {larger, root})};
}

Names cast(const WriteCall& call) {
  return {call.cast(call.inputs[0], call.type().dtype)};
}

Names where(const WriteCall& call) {
  return {call.where(call.inputs[0], call.inputs[1], call.inputs[2], call.type().dtype)};
}

Names gelu(const WriteCall& call) {
  if (call.graph.shared().opset < 20) return {};
  return {call.add("Gelu", call.inputs, {{"approximate", call.text("approximate")}})};
}

Names same(const WriteCall& call) {
  return {call.inputs[0]};
}
}  // namespace

const WriterRows& elementwise_writers() {
  static const WriterRows rows = {
      {"abs", of_numbers, "Abs"},
      {"acos", direct, "Acos"},
      {"acosh", direct, "Acosh"},
      {"add", of_numbers, "Add"},
      {"asin", direct, "Asin"},
      {"asinh", direct, "Asinh"},
      {"atan", direct, "Atan"},
      {"atanh", direct, "Atanh"},
      {"atan2", atan2},
      {"bitwise_and", direct, "BitwiseAnd"},
      {"bitwise_or", direct, "BitwiseOr"},
      {"bitwise_xor", direct, "BitwiseXor"},
      {"cast", cast},
      {"ceil", of_floats, "Ceil"},
      {"cos", direct, "Cos"},
      {"cosh", direct, "Cosh"},
      {"div", direct, "Div"},
      {"equal", compared, "Equal"},
      {"erf", direct, "Erf"},
      {"exp", direct, "Exp"},
      {"expm1", expm1},
      {"floor", of_floats, "Floor"},
      {"floor_divide", floor_divide},
      {"gelu", gelu},
      {"greater", compared, "Greater"},
      {"greater_equal", compared, "GreaterOrEqual"},
      {"hypot", hypot},
      {"less", compared, "Less"},
      {"less_equal", compared, "LessOrEqual"},
      {"log", direct, "Log"},
      {"log10", [](const WriteCall& call) { return log_to_base(call, 10); }},
      {"log1p", log1p},
      {"log2", [](const WriteCall& call) { return log_to_base(call, 2); }},
      {"logical_and", direct, "And"},
      {"logical_not", direct, "Not"},
      {"logical_or", direct, "Or"},
      {"logical_xor", direct, "Xor"},
      {"maximum", of_numbers, "Max"},
      {"minimum", of_numbers, "Min"},
      {"mod", mod},
      {"mul", of_numbers, "Mul"},
      {"neg", of_numbers, "Neg"},
      {"not_equal", not_equal},
      {"pow", of_numbers, "Pow"},
      {"relu", direct, "Relu"},
      {"round", of_floats, "Round"},
      {"sigmoid", direct, "Sigmoid"},
      {"sign", of_numbers, "Sign"},
      {"sin", direct, "Sin"},
      {"sinh", direct, "Sinh"},
      {"softplus", direct, "Softplus"},
      {"sqrt", direct, "Sqrt"},
      {"stop_gradient", same},
      {"sub", of_numbers, "Sub"},
      {"tan", direct, "Tan"},
      {"tanh", direct, "Tanh"},
      {"trunc", trunc},
      {"watch", same},
      {"where", where},
      {"erfc",
       [](const WriteCall& call) -> Names {
         return {call.add("Sub", {call.scalar(1, call.type().dtype), call.add("Erf", call.inputs)})};
       }},
      {"exp2", [](const WriteCall& call) -> Names {
         return {call.add("Pow", {call.scalar(2, call.type().dtype), call.inputs[0]})};
       }}};
  return rows;
}

}  // namespace xtape::onnx
