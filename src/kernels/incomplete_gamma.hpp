/// The regularised incomplete gamma function, its inverse, and the quantiles of the Poisson distribution, which follow
/// from it. Compiled once, for any processor.
#pragma once

namespace xtape {

/// P(a, x), the distribution function of the gamma distribution of shape a; NaN unless a > 0 and x >= 0. By the series
/// below a + 1 and the continued fraction above; for a > 1e8 by the cube root that is nearly normal (Wilson and
/// Hilferty, 1931).
double gammainc(double a, double x);
/// The x with P(a, x) = p, by Halley's method between bounds; NaN unless a > 0 and p is in [0, 1].
double gammaincinv(double a, double p);
/// The smallest k with a probability of at least p that a Poisson variable of this rate is at most k; NaN unless p is
/// in [0, 1] and the rate is not negative and finite.
double poisson_quantile(double p, double rate);

}  // namespace xtape
