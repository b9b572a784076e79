// The incomplete gamma function, its inverse, and the quantiles of the Poisson distribution. Samples of the gamma and
// Poisson distributions use them. They are tiles, because they consist of loops until convergence.
#include "kernels/math/functions.hpp"
#include "ops/elementwise/arithmetic.hpp"
#include "ops/recording/composed.hpp"
#include "xtape/ops/elementwise.hpp"

namespace xtape {

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

void list_incomplete_gamma(OpTable& table) {
  static const Op ops[] = {
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
  for (const Op& op : ops) table.add(op);
}

}  // namespace xtape
