// Elementwise functions that call one C function for each element. They are tiles and not compositions. Formulas in
// other ops would lose digits (asinh, atanh, log2 near 1, erfc) or would need several other ops (tan, lgamma).
#include <cmath>

#include "kernels/math/functions.hpp"
#include "ops/elementwise/arithmetic.hpp"
#include "xtape/ops/elementwise.hpp"

namespace xtape {

namespace {
using One = double (*)(double);
/// Returns the derivative of a function at x. `y` is the value of the function at x.
using Slope = Var (*)(const Var& x, const Var& y);

struct SpecialRow {
  const char* name;
  One function;
  Slope slope;  ///< Null if the function is not differentiable. Such a function returns integers unchanged.
  const char* doc;
};

const SpecialRow special_rows[] = {
    {"round", [](double x) { return std::nearbyint(x); }, nullptr,
     "The nearest whole number; ties go to the even number. Integers stay as they are. No gradient flows."},
    {"ceil", [](double x) { return std::ceil(x); }, nullptr,
     "The smallest whole number not below x, in the dtype of x. Integers stay as they are. No gradient flows."},
    {"trunc", [](double x) { return std::trunc(x); }, nullptr,
     "x rounded towards 0, in the dtype of x. Integers stay as they are. No gradient flows."},
    {"tan", [](double x) { return std::tan(x); }, [](const Var&, const Var& y) { return 1 + square(y); },
     "The tangent of x, in radians."},
    {"asin", [](double x) { return std::asin(x); }, [](const Var& x, const Var&) { return rsqrt((1 - x) * (1 + x)); },
     "The inverse sine of x, in [-pi / 2, pi / 2]; NaN outside [-1, 1]."},
    {"acos", [](double x) { return std::acos(x); }, [](const Var& x, const Var&) { return -rsqrt((1 - x) * (1 + x)); },
     "The inverse cosine of x, in [0, pi]; NaN outside [-1, 1]."},
    {"atan", [](double x) { return std::atan(x); }, [](const Var& x, const Var&) { return 1 / (1 + square(x)); },
     "The inverse tangent of x, in [-pi / 2, pi / 2]."},
    {"sinh", [](double x) { return std::sinh(x); }, [](const Var& x, const Var&) { return cosh(x); },
     "(exp(x) - exp(-x)) / 2, accurate near 0."},
    {"cosh", [](double x) { return std::cosh(x); }, [](const Var& x, const Var&) { return sinh(x); },
     "(exp(x) + exp(-x)) / 2."},
    {"asinh", [](double x) { return std::asinh(x); }, [](const Var& x, const Var&) { return 1 / hypot(x, 1); },
     "The inverse of sinh, log(x + sqrt(x * x + 1)), accurate near 0."},
    {"acosh", [](double x) { return std::acosh(x); },
     [](const Var& x, const Var&) { return rsqrt(x - 1) * rsqrt(x + 1); },
     "The inverse of cosh, log(x + sqrt(x * x - 1)); NaN where x < 1."},
    {"atanh", [](double x) { return std::atanh(x); }, [](const Var& x, const Var&) { return 1 / ((1 - x) * (1 + x)); },
     "The inverse of tanh, log((1 + x) / (1 - x)) / 2, accurate near 0; inf at 1, -inf at -1, NaN beyond."},
    {"exp2", [](double x) { return std::exp2(x); }, [](const Var&, const Var& y) { return y * M_LN2; }, "2 ** x."},
    {"log2", [](double x) { return std::log2(x); }, [](const Var& x, const Var&) { return 1 / (x * M_LN2); },
     "The logarithm of x to base 2; -inf at 0, NaN where x is negative."},
    {"log10", [](double x) { return std::log10(x); }, [](const Var& x, const Var&) { return 1 / (x * M_LN10); },
     "The logarithm of x to base 10; -inf at 0, NaN where x is negative."},
    {"erfc", [](double x) { return std::erfc(x); },
     [](const Var& x, const Var&) { return exp(-square(x)) * -M_2_SQRTPI; },
     "1 - erf(x), also accurate where the result is tiny."},
    {"erfinv", inverse_erf, [](const Var&, const Var& y) { return exp(square(y)) / M_2_SQRTPI; },
     "The inverse of erf; inf at 1, -inf at -1, NaN beyond."},
    {"lgamma", log_gamma, [](const Var& x, const Var&) { return digamma(x); },
     "The logarithm of the absolute value of the gamma function; inf at 0 and at negative integers."},
    {"digamma", digamma, [](const Var& x, const Var&) { return polygamma(1, x); },
     "The derivative of lgamma; NaN at negative integers, -inf at 0 and inf at -0."},
};

/// Records nothing for integers, because they are already whole numbers.
Vars record_whole(Tape& tape, const Op& op, const Vars& inputs, const Attributes& attributes) {
  return is_floating(inputs[0].dtype()) || inputs[0].dtype() == Dtype::boolean
             ? record_call(tape, op, inputs, attributes)
             : inputs;
}

std::vector<Op> special_ops() {
  std::vector<Op> ops;
  for (const SpecialRow& row : special_rows) {
    Op op = unary({row.name, row.doc, nullptr});
    op.lowering.tile = [f = row.function](const KernelCall& call) { return tile_of(f, call.dtype(0)); };
    if (row.slope == nullptr) {
      op.record = record_whole;
    } else {
      op.inputs = inputs_of("x");
      op.shape = same_dtype;
      op.differentiable = true;
      op.gradient = [slope = row.slope](const GradientCall& call) {
        return Vars{call.cotangent() * slope(call.inputs[0], call.outputs[0])};
      };
    }
    ops.push_back(op);
  }
  return ops;
}

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
  op.shape = [](const OpCall& call) {
    const std::int64_t n = call.integer("n");
    if (n < 0 || n >= std::int64_t{1} << 53)  // the kernel computes with n as a double
      throw Error("n must be at least 0 and less than 2 ** 53, got " + std::to_string(n));
    return same_dtype(call);
  };
  op.differentiable = true;
  op.gradient = [](const GradientCall& call) {
    return Vars{call.cotangent() * polygamma(call.integer("n") + 1, call.inputs[0])};
  };
  op.lowering.tile = [](const KernelCall& call) {
    return tile_of(polygamma, static_cast<double>(call.integer("n")), call.dtype(0));
  };
  return op;
}

using BitFunction = std::int64_t (*)(std::int64_t, std::int64_t);
struct BitwiseRow {
  const char* name;
  BitFunction function;
  const char* doc;
};
const BitwiseRow bitwise_rows[] = {
    {"bitwise_and", [](std::int64_t a, std::int64_t b) { return a & b; }, "The bits that are set in both a and b."},
    {"bitwise_or", [](std::int64_t a, std::int64_t b) { return a | b; },
     "The bits that are set in a or b, or in both."},
    {"bitwise_xor", [](std::int64_t a, std::int64_t b) { return a ^ b; },
     "The bits that are set in exactly one of a and b."},
    {"bitwise_left_shift",
     [](std::int64_t a, std::int64_t b) {
       return b < 0 || b > 63 ? 0 : static_cast<std::int64_t>(static_cast<std::uint64_t>(a) << b);
     },
     "a * 2 ** b, wrapping; 0 where b is negative or at least the number of bits."},
    {"bitwise_right_shift", [](std::int64_t a, std::int64_t b) { return a >> (b < 0 || b > 63 ? 63 : b); },
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
    op.lowering.tile = [f = row.function](const KernelCall& call) { return tile_of(f, call.dtype(0)); };
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
// Poisson distributions use them. They are tiles, because they consist of loops until convergence.

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
  static const std::vector<Op> functions = special_ops(), bitwise = bitwise_ops();
  static const Op others[] = {
      polygamma_op(),
      of_two(
          "atan2", "y x", [](double y, double x) { return std::atan2(y, x); },
          "The angle of the point (x, y), in [-pi, pi]. The gradient at (0, 0) is NaN.", atan2_gradient),
      of_two(
          "hypot", "a b", [](double a, double b) { return std::hypot(a, b); },
          "sqrt(a * a + b * b). The intermediate values neither overflow nor underflow. The gradient at (0, 0) is NaN.",
          hypot_gradient),
      of_two("gammainc", "a x", gammainc,
             "The regularised lower incomplete gamma function P(a, x), the distribution function of the gamma "
             "distribution of shape a; NaN unless a > 0 and x >= 0.",
             gammainc_gradient),
      of_two("gammaincinv", "a p", gammaincinv, "The x with gammainc(a, x) = p; NaN unless a > 0 and p is in [0, 1].",
             gammaincinv_gradient),
      of_two("poisson_quantile", "p rate", poisson_quantile,
             "The smallest integer k for which a Poisson variable of this rate is at most k with probability at least "
             "p. NaN if p is outside [0, 1], or if the rate is negative or infinite. No gradient flows.",
             nullptr)};
  for (const Op& op : functions) table.add(op);
  for (const Op& op : bitwise) table.add(op);
  for (const Op& op : others) table.add(op);
}

}  // namespace xtape
