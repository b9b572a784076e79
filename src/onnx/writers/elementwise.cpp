// Elementwise ops.
#include <cmath>
#include <iterator>
#include <limits>

#include "onnx/expression.hpp"

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

/// The operands of a division of integers for which every division is defined: 0 and -1 are replaced as divisors,
/// because a division by 0, and one of the smallest integer by -1, end a program.
struct Division {
  Expression is_zero, dividend, divisor;
  Division(const Expression& a, const Expression& b)
      : is_zero(b == 0), dividend(where(b == -1, -a, a)), divisor(where(either(is_zero, b == -1), 1, b)) {}
};

/// Whether a remainder has another sign than the divisor. The quotient was then rounded up.
Expression rounded_up(const Expression& rest, const Expression& divisor) {
  return both(differ(rest < 0, divisor < 0), !(rest == 0));
}

Expression truncated_remainder(const Expression& a, const Expression& b) {
  return a.with("Mod", {b.name}, {{"fmod", 1}});
}

/// The formulas of floats are those of the kernel (src/kernels/elements/division.hpp).
Names floor_divide(const WriteCall& call) {
  const Expression a = operand(call, 0), b = operand(call, 1);
  if (!is_floating(a.dtype)) {
    const Division by(a, b);
    const Expression quotient = by.dividend / by.divisor, rest = by.dividend - quotient * by.divisor;
    return result(where(by.is_zero, 0, quotient - rounded_up(rest, by.divisor).as(a.dtype)));
  }
  const Expression ratio = a / b, rest = truncated_remainder(a, b), near = (a - rest) / b;
  const Expression quotient = where(rounded_up(rest, b), near - 1, near), down = quotient.with("Floor");
  const Expression whole = where(quotient - down > 0.5, down + 1, down);
  return result(where(b == 0, ratio, where(quotient == 0, ratio * 0, whole)));
}

Names mod(const WriteCall& call) {
  const Expression a = operand(call, 0), b = operand(call, 1);
  if (!is_floating(a.dtype)) {
    const Division by(a, b);
    return result(where(by.is_zero, 0, by.dividend.with("Mod", {by.divisor.name})));
  }
  const Expression rest = truncated_remainder(a, b), zero = where(b < 0, -0.0, rest.number(0));
  return result(where(rest == 0, zero, where(rounded_up(rest, b), rest + b, rest)));
}

Names trunc(const WriteCall& call) {
  const Expression x = operand(call);
  if (!is_floating(x.dtype)) return {call.inputs[0]};
  return result(where(x < 0, x.with("Ceil"), x.with("Floor")));
}

Names log_to_base(const WriteCall& call, double log_of_base) {
  return result(operand(call).with("Log") / log_of_base);
}

Names exp2(const WriteCall& call) {
  const Expression x = operand(call);
  return result(x.number(2).with("Pow", {x.name}));
}

/// log(u) * x / (u - 1) with u = 1 + x, so that the rounding errors cancel (Kahan). The result is x itself if u is 1 or
/// infinite.
Names log1p(const WriteCall& call) {
  const Expression x = operand(call), u = x + 1;
  return result(where(either(u == 1, u == INFINITY), x, u.with("Log") * (x / (u - 1))));
}

/// tanh(x / 2) * (exp(x) + 1), accurate near 0.
Names expm1(const WriteCall& call) {
  const Expression x = operand(call);
  return result((x * 0.5).with("Tanh") * (x.with("Exp") + 1));
}

/// exp(-a * a) * p(t) / (a + 1) with a = |x|, where p is a polynomial in t = (a - 3) / (a + 3), and 2 minus this number
/// for negative x. The tail keeps its digits. Computed in float64, whose error is below 1e-15 of the result.
Names erfc(const WriteCall& call) {
  static constexpr double coefficients[] = {
      0x1.6e9827d229d2cp-1,   -0x1.d8f06dfac798bp-3,  0x1.9596c92adb3c3p-4,   -0x1.4f64aa4aa3147p-7,
      -0x1.8600d9148ff8ap-6,  0x1.67c1899501cb9p-6,   -0x1.3f82b5c9a20d7p-7,  0x1.a84c55d756a7bp-10,
      0x1.5297b32f8334ap-11,  -0x1.81213f83ed998p-12, -0x1.58c9bf962f9fep-16, 0x1.d6c361733642cp-15,
      -0x1.972067b468869p-20, -0x1.2da7b4aee3bfap-17, 0x1.1da6fc65d67e1p-22,  0x1.aa7771383b270p-20,
      0x1.c19d82b68a42bp-25,  -0x1.3b0c4147ae6b3p-22, -0x1.4859a16ba3512p-25, 0x1.b5d6576424e90p-25,
      0x1.6629c3b16f955p-27,  -0x1.e56dd7b8b8409p-28, -0x1.5d6946b752614p-30, 0x1.320eaed7d2563p-31};
  const Expression x = operand(call).as(Dtype::float64), size = x.with("Abs");
  const Expression a = where(size > 100, 100, size);  // keeps NaN; erfc(100) is 0
  const Expression t = 1 - 6 / (a + 3);
  Expression p = t.number(*std::rbegin(coefficients));
  for (auto next = std::rbegin(coefficients) + 1; next != std::rend(coefficients); ++next) p = p * t + *next;
  // a * a would be rounded, so its exact part is separate.
  const Expression high = (a * 16).with("Floor") / 16, low = (a - high) * (a + high);
  const Expression tail = (-(high * high)).with("Exp") * (-low).with("Exp") * p / (a + 1);
  return result(where(x < 0, 2 - tail, tail));
}

/// The arc tangent of y / x, shifted by pi for negative x. Two infinite numbers are like 1, and the origin is a point
/// on the axis of x.
Names atan2(const WriteCall& call) {
  const Expression y = operand(call, 0), x = operand(call, 1);
  const Expression ends = both(y.with("Abs") == INFINITY, x.with("Abs") == INFINITY), back = has_sign(x);
  const Expression origin = both(x == 0, y == 0);
  const Expression across = where(either(ends, origin), where(back, -1, x.number(1)), x);
  const Expression angle = (where(ends, y.with("Sign"), y) / across).with("Atan");
  return result(where(back, angle + where(has_sign(y), -M_PI, y.number(M_PI)), angle));
}

/// The larger number times sqrt(1 + ratio * ratio). The intermediate values do not overflow. Infinite if one of both
/// is, even beside NaN.
Names hypot(const WriteCall& call) {
  const Expression a = operand(call, 0).with("Abs"), b = operand(call, 1).with("Abs");
  const Expression larger = a.with("Max", {b.name}), smaller = a.with("Min", {b.name});
  const Expression ratio = smaller / where(larger == 0, 1, larger);
  const Expression length = larger * (ratio * ratio + 1).with("Sqrt");
  return result(where(either(a == INFINITY, b == INFINITY), INFINITY, length));
}

/// Floats outside the range of integers become the ends of this range, and NaN becomes 0. ONNX leaves both undefined.
Names cast(const WriteCall& call) {
  const Dtype from = call.types[0].dtype, to = call.type().dtype;
  if (!is_floating(from) || is_floating(to) || to == Dtype::boolean) return {call.cast(call.inputs[0], to)};
  const auto bits = static_cast<int>(8 * size_of(to));
  const std::int64_t most = std::numeric_limits<std::int64_t>::max() >> (64 - bits);
  const Expression x = operand(call), limit = x.number(std::ldexp(1, bits - 1));
  const Dtype wide = number_dtype(to);
  const auto end = [&](std::int64_t number) { return Expression{&call, call.scalar(number, wide), wide}; };
  const Expression inside = where(x.with("Abs") < limit, x, 0).as(wide);
  return result(where(x >= limit, end(most), where(x <= -limit, end(-most - 1), inside)));
}

Names where(const WriteCall& call) {
  return {call.where(call.inputs[0], call.inputs[1], call.inputs[2], call.type().dtype)};
}

Names gelu(const WriteCall& call) {
  if (call.graph.shared().opset < 20) return {};
  return {call.add("Gelu", call.inputs, {{"approximate", call.text("approximate")}})};
}

/// Not used for float64, which ONNX Runtime computes in float32 or, from version 22 of the operator on, not at all.
Names softplus(const WriteCall& call) {
  return call.type().dtype == Dtype::float64 ? Names{} : direct(call);
}

Names same(const WriteCall& call) {
  return {call.inputs[0]};
}
}  // namespace

const WriterRows& elementwise_writers() {
  static const WriterRows rows = {{"abs", of_numbers, "Abs"},
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
                                  {"erfc", erfc},
                                  {"exp", direct, "Exp"},
                                  {"exp2", exp2},
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
                                  {"log10", [](const WriteCall& call) { return log_to_base(call, M_LN10); }},
                                  {"log1p", log1p},
                                  {"log2", [](const WriteCall& call) { return log_to_base(call, M_LN2); }},
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
                                  {"softplus", softplus, "Softplus"},
                                  {"sqrt", direct, "Sqrt"},
                                  {"stop_gradient", same},
                                  {"sub", of_numbers, "Sub"},
                                  {"tan", direct, "Tan"},
                                  {"tanh", direct, "Tanh"},
                                  {"trunc", trunc},
                                  {"watch", same},
                                  {"where", where}};
  return rows;
}

}  // namespace xtape::onnx
