// Elementwise functions with loops of their own. Formulas in other ops would lose digits (asinh, atanh, log2 near 1,
// erfc) or would need several other ops (tan, lgamma).
#include <cmath>

#include "ops/elementwise/arithmetic.hpp"
#include "xtape/ops/elementwise.hpp"

namespace xtape {

namespace {
const UnaryRow special_rows[] = {
    {"tan", "The tangent of x, in radians.",
     [](const Var& g, const Var&, const Var& y) { return g * (1 + square(y)); }},
    {"asin", "The inverse sine of x, in [-pi / 2, pi / 2]; NaN outside [-1, 1].",
     [](const Var& g, const Var& x, const Var&) { return g * rsqrt((1 - x) * (1 + x)); }},
    {"acos", "The inverse cosine of x, in [0, pi]; NaN outside [-1, 1].",
     [](const Var& g, const Var& x, const Var&) { return g * -rsqrt((1 - x) * (1 + x)); }},
    {"atan", "The inverse tangent of x, in [-pi / 2, pi / 2].",
     [](const Var& g, const Var& x, const Var&) { return g * (1 / (1 + square(x))); }},
    {"sinh", "(exp(x) - exp(-x)) / 2, accurate near 0.",
     [](const Var& g, const Var& x, const Var&) { return g * cosh(x); }},
    {"cosh", "(exp(x) + exp(-x)) / 2.", [](const Var& g, const Var& x, const Var&) { return g * sinh(x); }},
    {"asinh", "The inverse of sinh, log(x + sqrt(x * x + 1)), accurate near 0.",
     [](const Var& g, const Var& x, const Var&) { return g * (1 / hypot(x, 1)); }},
    {"acosh", "The inverse of cosh, log(x + sqrt(x * x - 1)); NaN where x < 1.",
     [](const Var& g, const Var& x, const Var&) { return g * (rsqrt(x - 1) * rsqrt(x + 1)); }},
    {"atanh", "The inverse of tanh, log((1 + x) / (1 - x)) / 2, accurate near 0; inf at 1, -inf at -1, NaN beyond.",
     [](const Var& g, const Var& x, const Var&) { return g * (1 / ((1 - x) * (1 + x))); }},
    {"exp2", "2 ** x.", [](const Var& g, const Var&, const Var& y) { return g * (y * M_LN2); }},
    {"log2", "The logarithm of x to base 2; -inf at 0, NaN where x is negative.",
     [](const Var& g, const Var& x, const Var&) { return g * (1 / (x * M_LN2)); }},
    {"log10", "The logarithm of x to base 10; -inf at 0, NaN where x is negative.",
     [](const Var& g, const Var& x, const Var&) { return g * (1 / (x * M_LN10)); }},
    {"erfc", "1 - erf(x), also accurate where the result is tiny.",
     [](const Var& g, const Var& x, const Var&) { return g * (exp(-square(x)) * -M_2_SQRTPI); }},
    {"erfinv", "The inverse of erf; inf at 1, -inf at -1, NaN beyond.",
     [](const Var& g, const Var&, const Var& y) { return g * (exp(square(y)) / M_2_SQRTPI); }},
    {"lgamma", "The logarithm of the absolute value of the gamma function; inf at 0 and at negative integers.",
     [](const Var& g, const Var& x, const Var&) { return g * digamma(x); }},
    {"digamma", "The derivative of lgamma; NaN at negative integers, -inf at 0 and inf at -0.",
     [](const Var& g, const Var& x, const Var&) { return g * polygamma(1, x); }},
};

/// Records nothing for integers, because they are already whole numbers.
Vars record_whole(Tape& tape, const Op& op, const Vars& inputs, const Attributes& attributes) {
  return is_floating(inputs[0].dtype()) || inputs[0].dtype() == Dtype::boolean
             ? record_call(tape, op, inputs, attributes)
             : inputs;
}

const UnaryRow rounding_rows[] = {
    {"round", "The nearest whole number; ties go to the even number. Integers stay as they are. No gradient flows.",
     nullptr, nullptr, record_whole},
    {"ceil", "The smallest whole number not below x, in the dtype of x. Integers stay as they are. No gradient flows.",
     nullptr, nullptr, record_whole},
    {"trunc", "x rounded towards 0, in the dtype of x. Integers stay as they are. No gradient flows.", nullptr, nullptr,
     record_whole},
};

Vars atan2_gradient(const GradientCall& call) {
  const Var &y = call.inputs[0], &x = call.inputs[1];
  const Var length = hypot(y, x), share = call.cotangent() / length;
  return per_operand(
      call, [&] { return share * (x / length); }, [&] { return -(share * (y / length)); });
}

Vars hypot_gradient(const GradientCall& call) {
  const auto share = [&](std::size_t i) {
    return [&call, i] { return call.cotangent() * (call.inputs[i] / call.outputs[0]); };
  };
  return per_operand(call, share(0), share(1));
}

Op polygamma_op() {
  Op op = unary({"polygamma", "The n-th derivative of digamma.", nullptr}, inputs_of("x"));
  op.attributes = {
      {"n", AttributeType::integer, "The order of the derivative, at least 0 and less than 2 ** 53.", std::nullopt}};
  op.shape = +[](const OpCall& call) {
    const std::int64_t n = call.integer("n");
    if (n < 0 || n >= std::int64_t{1} << 53)  // the kernel computes with n as a double
      throw Error("n must be at least 0 and less than 2 ** 53, got " + std::to_string(n));
    return same_dtype(call);
  };
  op.differentiable = true;
  op.gradient = +[](const GradientCall& call) {
    return Vars{call.cotangent() * polygamma(call.integer("n") + 1, call.inputs[0])};
  };
  return op;
}

struct BitwiseRow {
  const char *name, *doc;
};
const BitwiseRow bitwise_rows[] = {
    {"bitwise_and", "The bits that are set in both a and b."},
    {"bitwise_or", "The bits that are set in a or b, or in both."},
    {"bitwise_xor", "The bits that are set in exactly one of a and b."},
    {"bitwise_left_shift", "a * 2 ** b, wrapping; 0 where b is negative or at least the number of bits."},
    {"bitwise_right_shift",
     "floor(a / 2 ** b). If b is negative or at least the number of bits, the result is 0 for a >= 0 and -1 for a < "
     "0."},
};

std::vector<ValueType> integer_type(const OpCall& call) {
  if (!is_integer(call.dtype(0)))
    throw DtypeError(std::string("takes integers, received ") + name_of(call.dtype(0)) +
                     (call.dtype(0) == Dtype::boolean ? ": use the logical ops" : ": cast to an integer first"));
  return same_dtype(call);
}

std::vector<Op> bitwise_ops() {
  std::vector<Op> ops;
  for (const BitwiseRow& row : bitwise_rows) {
    Op op = binary(row.name, row.doc, nullptr);
    op.shape = integer_type;
    ops.push_back(op);
  }
  // The composition is exact in two's complement.
  ops.push_back(unary(
      {"bitwise_not", "The bits that are not set in x, that is -x - 1.", nullptr, [](const Var& x) { return -1 - x; }},
      {{"x"}}, integer_type));
  ops.back().lowering = {};
  return ops;
}
}  // namespace

XTAPE_UNARY(round)
XTAPE_UNARY(ceil)
XTAPE_UNARY(trunc)
XTAPE_UNARY(tan)
XTAPE_UNARY(asin)
XTAPE_UNARY(acos)
XTAPE_UNARY(atan)
XTAPE_UNARY(sinh)
XTAPE_UNARY(cosh)
XTAPE_UNARY(asinh)
XTAPE_UNARY(acosh)
XTAPE_UNARY(atanh)
XTAPE_UNARY(exp2)
XTAPE_UNARY(log2)
XTAPE_UNARY(log10)
XTAPE_UNARY(erfc)
XTAPE_UNARY(erfinv)
XTAPE_UNARY(lgamma)
XTAPE_UNARY(digamma)
XTAPE_UNARY(bitwise_not)
XTAPE_BINARY(atan2)
XTAPE_BINARY(hypot)
XTAPE_BINARY(bitwise_and)
XTAPE_BINARY(bitwise_or)
XTAPE_BINARY(bitwise_xor)
XTAPE_BINARY(bitwise_left_shift)
XTAPE_BINARY(bitwise_right_shift)
Var polygamma(std::int64_t n, const Argument& x) {
  return call_op("polygamma", {x}, {{"n", n}});
}

// The incomplete gamma function, its inverse, and the quantiles of the Poisson distribution. Samples of the gamma and
// Poisson distributions use them. They have loops of their own, because they iterate until convergence.

namespace {
/// Returns the log of the density at x of the gamma distribution with shape a. Computes it in float64, because large
/// numbers cancel.
Var log_density(const Var& a, const Var& x) {
  const Var at = cast(x, Dtype::float64), power = cast(a, Dtype::float64) - 1;
  const Var none = power == 0;  // 0 times log(0) is NaN
  return masked_fill(power * log(where(none, 1.0, at)), none, 0) - at - lgamma(power + 1);
}

/// Let x be the number at which gammainc(a, x) has a given value. Returns the derivative of x with respect to a
/// (Figurnov et al., 2018), computed in float64. It is minus the derivative of gammainc with respect to a, divided by
/// the density at x. The numerator is an integral of log(t) - digamma(a) times the density at t: over t > x, or minus
/// the integral over t < x. With t = x exp(v) or x exp(-v), a sum over 48 values of v is correct to at least 9 digits.
/// These values approach 0 doubly exponentially.
Var slope_by_shape(const Var& shape, const Var& value) {
  constexpr std::int64_t points = 48;
  constexpr double first = -3.4, step = 6.8 / (points - 1);
  const auto wide = [](const Var& x) { return expand_dims(cast(x, Dtype::float64), -1); };
  const Var a = wide(broadcast_to(shape, value.shape()));
  const Var x = maximum(wide(value), 1e-300);  // samples of tiny shapes underflow
  const Var above = x > a + 1, root = sqrt(a);
  const Var scale = stop_gradient(where(above, 1 / (root + 0.4), (1 + root) / a));
  const Var at = iota(a.tape(), {points}, 0, Dtype::float64) * step + first, down = exp(-at);
  const Var v = scale * exp(at - down), sign = cast(above, Dtype::float64) * 2 - 1;
  const Var parts = exp(sign * a * v - x * expm1(sign * v)) * (log(x) - digamma(a) + sign * v);
  const Var sum_of_parts = sum(parts * (v * ((1 + down) * step)), {-1}, true);
  return cast(squeeze(sign * x * sum_of_parts, {-1}), value.dtype());
}

Vars gammainc_gradient(const GradientCall& call) {
  const Var &a = call.inputs[0], &x = call.inputs[1];
  const Var share = call.cotangent() * cast(exp(log_density(a, x)), x.dtype());
  return per_operand(
      call, [&] { return -(share * slope_by_shape(a, broadcast_to(x, share.shape()))); }, [&] { return share; });
}

Vars gammaincinv_gradient(const GradientCall& call) {
  const Var &a = call.inputs[0], &x = call.outputs[0];
  return per_operand(
      call, [&] { return call.cotangent() * slope_by_shape(a, x); },
      [&] { return call.cotangent() * cast(exp(-log_density(a, x)), x.dtype()); });
}
}  // namespace

XTAPE_BINARY(gammainc)
XTAPE_BINARY(gammaincinv)
XTAPE_BINARY(poisson_quantile)

void list_special(OpTable& table) {
  static const std::vector<std::vector<Op>> families{
      unary_ops(rounding_rows), unary_ops(special_rows, inputs_of("x"), same_dtype), bitwise_ops()};
  static const Op others[] = {
      polygamma_op(),
      of_two("atan2", "y x", "The angle of the point (x, y), in [-pi, pi]. The gradient at (0, 0) is NaN.",
             atan2_gradient),
      of_two(
          "hypot", "a b",
          "sqrt(a * a + b * b). The intermediate values neither overflow nor underflow. The gradient at (0, 0) is NaN.",
          hypot_gradient),
      of_two("gammainc", "a x",
             "The regularised lower incomplete gamma function P(a, x), the distribution function of the gamma "
             "distribution of shape a; NaN unless a > 0 and x >= 0.",
             gammainc_gradient),
      of_two("gammaincinv", "a p", "The x with gammainc(a, x) = p; NaN unless a > 0 and p is in [0, 1].",
             gammaincinv_gradient),
      of_two("poisson_quantile", "p rate",
             "The smallest integer k for which a Poisson variable of this rate is at most k with probability at least "
             "p. NaN if p is outside [0, 1], or if the rate is negative or infinite. No gradient flows.",
             nullptr)};
  add_all(table, families);
  for (const Op& op : others) table.add(op);
}

}  // namespace xtape
