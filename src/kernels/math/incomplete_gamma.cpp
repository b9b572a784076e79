#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/math/functions.hpp"

namespace xtape {

namespace {
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN(), most_terms = 1e8;

/// x ** a * exp(-x) / gamma(a + 1). For large a, uses Stirling's series, in which no large numbers cancel.
double leading_term(double a, double x) {
  if (a < 10) return std::exp(a * std::log(x) - x - log_gamma(a + 1));
  const double m = (x - a) / a, z = 1 / (a * a);
  const double rest = (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z * (1.0 / 1680 - z / 1188)))) / a;
  return std::exp(a * (std::log1p(m) - m) - rest) / std::sqrt(2 * M_PI * a);
}

/// The quantile of the standard normal distribution. For small p it is only an approximation, because 1 - p has too few
/// digits (Abramowitz and Stegun, 1964, 26.2.23).
double normal_quantile(double p) {
  if (p >= 0.5) return M_SQRT2 * inverse_erf(2 * p - 1);
  if (p > 1e-12) return -normal_quantile(1 - p);
  const double t = std::sqrt(-2 * std::log(p));
  return (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))) - t;
}

/// P(a, x) and 1 - P(a, x). The smaller of the two has full precision.
struct Parts {
  double below = 0, above = 0;
};
Parts parts(double a, double x) {
  if (x == 0) return {0, 1};
  if (std::isinf(x)) return {1, 0};
  if (a > most_terms) {
    const double z = 3 * std::sqrt(a) * (std::cbrt(x / a) - 1 + 1 / (9 * a));
    return {std::erfc(-z / M_SQRT2) / 2, std::erfc(z / M_SQRT2) / 2};
  }
  constexpr double least = std::numeric_limits<double>::epsilon() / 4, tiny = 1e-300;
  if (x < a + 1) {
    double sum = 1, term = 1;
    for (double n = 1; term > sum * least; ++n) sum += term *= x / (a + n);
    const double below = sum * leading_term(a, x);
    return {below, 1 - below};
  }
  // Evaluates the continued fraction with the method of Lentz (1976).
  double b = x + 1 - a, c = 1 / tiny, d = 1 / b, fraction = d;
  for (double n = 1; n < most_terms; ++n) {
    const double numerator = n * (a - n);
    b += 2;
    d = numerator * d + b;
    c = b + numerator / c;
    if (std::abs(d) < tiny) d = tiny;
    if (std::abs(c) < tiny) c = tiny;
    d = 1 / d;
    fraction *= d * c;
    if (std::abs(d * c - 1) < 4 * least) break;
  }
  const double above = fraction * a * leading_term(a, x);
  return {1 - above, above};
}
}  // namespace

double gammainc(double a, double x) {
  return a > 0 && x >= 0 ? parts(a, x).below : not_a_number;
}

double gammaincinv(double a, double p) {
  if (!(a > 0 && p >= 0 && p <= 1) || std::isinf(a)) return not_a_number;
  if (p == 0) return 0;
  if (p == 1) return std::numeric_limits<double>::infinity();
  // The bound follows from P(a, x) < x ** a / gamma(a + 1).
  double low = std::exp((std::log(p) + log_gamma(a + 1)) / a), high = std::numeric_limits<double>::infinity();
  const double root = 1 - 1 / (9 * a) + normal_quantile(p) / (3 * std::sqrt(a));
  double x = std::max(low, root > 0 ? a * root * root * root : 0);
  if (x == 0) return 0;  // the quantile is below the smallest positive number
  for (int i = 0; i < 200; ++i) {
    const Parts at = parts(a, x);
    const double beyond = p < 0.5 ? at.below - p : (1 - p) - at.above;
    if (beyond == 0) return x;
    (beyond > 0 ? high : low) = x;
    const double step = beyond * x / (a * leading_term(a, x)), bend = step * ((a - 1) / x - 1) / 2;
    double next = x - step / (1 - std::min(0.5, std::max(-0.5, bend)));
    // The error after this step is proportional to the third power of the step.
    if (std::abs(next - x) <= 1e-6 * x / (1 + std::sqrt(a))) return next;
    // In far tails, the steps are too long or too short.
    if (!(next > low && next < high && next <= 2 * x) || i % 8 == 7)
      next = std::isinf(high) ? 2 * x : low + (high - low) / 2;
    x = next;
  }
  return x;
}

double poisson_quantile(double p, double rate) {
  if (!(p >= 0 && p <= 1 && rate >= 0) || std::isinf(rate)) return not_a_number;
  if (p == 1 && rate > 0) return std::numeric_limits<double>::infinity();
  if (p == 0 || rate == 0) return 0;
  const double z = normal_quantile(p);
  double k = std::max(0.0, std::floor(rate + z * std::sqrt(rate) + (z * z - 1) / 6));
  if (rate > most_terms) return k;
  double reached = parts(k + 1, rate).above;
  for (double more = 1; reached < p && more > 0;) {
    const double before = reached;
    reached += leading_term(++k, rate);
    more = reached - before;
  }
  for (double last = leading_term(k, rate); k > 0 && reached - last >= p; last = leading_term(k, rate)) {
    reached -= last;
    --k;
  }
  return k;
}

}  // namespace xtape
