// Elementwise arithmetic. Floor division and its remainder are as in Python.
#include "ops/elementwise/arithmetic.hpp"

#include <cmath>

#include "ops/reductions/reductions.hpp"
#include "tape/graph.hpp"

namespace xtape {

namespace {
Vars add_gradient(const GradientCall& call) {
  const Var g = call.cotangent();
  return per_operand(
      call, [&] { return g; }, [&] { return g; });
}

Vars sub_gradient(const GradientCall& call) {
  const Var g = call.cotangent();
  return per_operand(
      call, [&] { return g; }, [&] { return -g; });
}

Vars mul_gradient(const GradientCall& call) {
  const Var g = call.cotangent();
  return per_operand(
      call, [&] { return g * call.inputs[1]; }, [&] { return g * call.inputs[0]; });
}

Vars record_mul(Tape& tape, const Op& op, const Vars& inputs, const Attributes& attributes) {
  const Var squares = inputs[0].id() == inputs[1].id() ? square_of_root(inputs[0]) : Var();
  return squares.empty() ? record_call(tape, op, inputs, attributes) : Vars{squares};
}

Vars record_square(Tape& tape, const Op& op, const Vars& inputs, const Attributes& attributes) {
  const Var squares = square_of_root(inputs[0]);
  return squares.empty() ? record_call(tape, op, inputs, attributes) : Vars{squares};
}

Vars div_gradient(const GradientCall& call) {
  const Var g = call.cotangent() / call.inputs[1];
  return per_operand(
      call, [&] { return g; }, [&] { return -(g * call.outputs[0]); });
}

Vars record_div(Tape& tape, const Op& op, const Vars& inputs, const Attributes& attributes) {
  Vars floats = inputs;
  for (Var& input : floats)
    if (is_integer(input.dtype())) input = cast(input, tape.default_dtype());
  return record_call(tape, op, floats, attributes);
}

Vars mod_gradient(const GradientCall& call) {
  const Var g = call.cotangent();
  return per_operand(
      call, [&] { return g; }, [&] { return -(g * floor_divide(call.inputs[0], call.inputs[1])); });
}

/// Returns the share of the cotangent `g` for one input of maximum or minimum: nothing where it `loses`, half where
/// there is a `tie`, and all of it elsewhere. Where an input is NaN, both masks are false, so both inputs get all of
/// the cotangent.
Var winners_share(const Var& g, const Var& tie, const Var& loses) {
  return where(loses, 0, where(tie, g * 0.5, g));
}

Vars maximum_gradient(const GradientCall& call) {
  const Var g = call.cotangent();
  const Var &a = call.inputs[0], &b = call.inputs[1];
  return per_operand(
      call, [&] { return winners_share(g, a == b, a < b); }, [&] { return winners_share(g, a == b, a > b); });
}

Vars minimum_gradient(const GradientCall& call) {
  const Var g = call.cotangent();
  const Var &a = call.inputs[0], &b = call.inputs[1];
  return per_operand(
      call, [&] { return winners_share(g, a == b, a > b); }, [&] { return winners_share(g, a == b, a < b); });
}

/// Returns the value of a float literal, or NaN for any other var.
double known_scalar(const Var& x) {
  const Node& node = x.node();
  if (!is_literal(node)) return std::nan("");
  if (node.storage.dtype() == Dtype::float32) return node.storage.as<float>()[0];
  if (node.storage.dtype() == Dtype::float64) return node.storage.as<double>()[0];
  return std::nan("");
}

Vars pow_gradient(const GradientCall& call) {
  const Var g = call.cotangent();
  const Var &a = call.inputs[0], &b = call.inputs[1];
  const auto to_a = [&] {
    const Var slope = b * pow(a, b - 1);
    const double exponent = known_scalar(b);
    if (exponent == 0) return zeros_like(call.outputs[0]);
    return g * (std::isnan(exponent) ? where(b == 0, 0, slope) : slope);
  };
  const auto to_b = [&] {
    const Var flat = (a == 0) & (b >= 0);
    return g * where(flat, 0, call.outputs[0] * log(where(flat, 1, a)));
  };
  return per_operand(call, to_a, to_b);
}

Vars record_pow(Tape& tape, const Op& op, const Vars& inputs, const Attributes& attributes) {
  const double exponent = known_scalar(inputs[1]);
  if (exponent == 1) return {inputs[0]};
  if (exponent == 2) return {square(inputs[0])};
  if (exponent == 0.5) return {sqrt(inputs[0])};
  if (exponent == -0.5) return {rsqrt(inputs[0])};
  return record_call(tape, op, inputs, attributes);
}

const UnaryRow unary_rows[] = {
    {"neg", "-x. Integers wrap.", [](const Var& g, const Var&, const Var&) { return -g; }},
    {"abs", "|x|. The gradient at 0 is 0. Integers wrap.",
     [](const Var& g, const Var& x, const Var&) { return g * sign(x); }},
    {"sign", "-1, 0 or 1 where x is negative, zero or positive. NaN stays NaN.", nullptr},
    {"floor", "The largest whole number not above x. Integers are unchanged.", nullptr},
    {"square", "x * x. Integers wrap.", [](const Var& g, const Var& x, const Var&) { return g * (x * 2); },
     [](const Var& x) { return x * x; }, record_square},
};

Op add_op() {
  Op op = binary("add", "a + b. Integers wrap.", add_gradient);
  op.algebra.adds = true;
  return op;
}
}  // namespace

XTAPE_BINARY(add)
XTAPE_BINARY(sub)
XTAPE_BINARY(mul)
XTAPE_BINARY(div)
XTAPE_BINARY(floor_divide)
XTAPE_BINARY(mod)
XTAPE_BINARY(pow)
XTAPE_BINARY(maximum)
XTAPE_BINARY(minimum)
XTAPE_UNARY(neg)
XTAPE_UNARY(abs)
XTAPE_UNARY(sign)
XTAPE_UNARY(square)
XTAPE_UNARY(floor)

void list_arithmetic(OpTable& table) {
  static const std::vector<Op> of_one = unary_ops(unary_rows);
  static const Op of_both[] = {
      add_op(),
      binary("sub", "a - b. Integers wrap.", sub_gradient),
      binary("mul", "a * b. Integers wrap.", mul_gradient, record_mul),
      binary("div", "a / b, true division. Integers are first cast to the tape's default dtype.", div_gradient,
             record_div),
      binary("floor_divide",
             "The largest whole number not above a / b, as Python's `//`; exact for integers. Integers divided by 0 "
             "give 0, as in NumPy; floats divided by 0 give inf, -inf or NaN. No gradient flows.",
             nullptr),
      binary("mod",
             "a - floor(a / b) * b: the remainder, with the sign of b, as in Python. Modulo 0, integers give 0 and "
             "floats NaN.",
             mod_gradient),
      binary("maximum",
             "The larger of a and b; NaN if one of them is NaN. Where they are equal, each gets half of the gradient.",
             maximum_gradient),
      binary("minimum",
             "The smaller of a and b; NaN if one of them is NaN. Where they are equal, each gets half of the gradient.",
             minimum_gradient),
      binary("pow",
             "a ** b. The gradient with respect to a is b * a ** (b - 1), and 0 where b is 0. The gradient with "
             "respect to b is a ** b * log(a), and 0 where a is 0 and b is not negative. If b is a number and a is a "
             "float, an exponent of 1 records nothing, and 2, 0.5 and -0.5 are recorded as square, sqrt and rsqrt. "
             "Integers wrap; an integer to a negative power is rounded towards 0, and 0 to a negative power is 0.",
             pow_gradient, record_pow)};
  for (const Op& op : of_one) table.add(op);
  for (const Op& op : of_both) table.add(op);
}

}  // namespace xtape
