/// The regularised incomplete gamma function, its inverse, and the quantiles of the Poisson distribution. The quantiles
/// are computed from this function. Compiled once for all processors.
#pragma once

namespace xtape {

/// P(a, x), the distribution function of the gamma distribution of shape a. NaN unless a > 0 and x >= 0. Uses the
/// series if x < a + 1, otherwise the continued fraction. For a > 1e8, approximates the cube root of the gamma variable
/// by a normal variable (Wilson and Hilferty, 1931).
double gammainc(double a, double x);
/// The x with P(a, x) = p, computed by Halley's method between bounds. NaN unless a > 0 and p is in [0, 1].
double gammaincinv(double a, double p);
/// The smallest integer k with P(X <= k) >= p for a Poisson variable X of this rate. NaN unless p is in [0, 1] and the
/// rate is finite and at least 0.
double poisson_quantile(double p, double rate);

}  // namespace xtape
