#include "kernels/math/functions.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kernels/math/gamma.hpp"
#include "kernels/math/special.hpp"
#include "kernels/math/vector_math.hpp"

namespace xtape::number_math {

using vector_math::Doubles;

// Each function computes one register, so that its results have the bits of the vectorised loops.
double exp(double x) {
  return vector_math::exp(x);
}
double log(double x) {
  return vector_math::log(x);
}
double sin(double x) {
  return vector_math::sin(Doubles(x)).get(0);
}
double cos(double x) {
  return vector_math::cos(Doubles(x)).get(0);
}
double pow(double x, double y) {
  return vector_math::power<vector_math::Digits::all>(Doubles(x), Doubles(y)).get(0);
}

namespace {
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

double log1p(double x) {
  return vector_math::log1p(Doubles(x)).get(0);
}
double expm1(double x) {
  return vector_math::expm1(Doubles(x)).get(0);
}
double erfc(double x) {
  return vector_math::erfc(Doubles(x)).get(0);
}
double erfinv(double x) {
  return vector_math::erfinv(Doubles(x)).get(0);
}
double log_gamma(double x) {
  return vector_math::log_gamma(Doubles(x)).get(0);
}

/// n! for a whole number n. The product has twice the precision of its result.
double factorial(double n) {
  if (n > 170) return infinity;
  double high = 1, low = 0;
  for (double k = 2; k <= n; ++k) {
    const double product = high * k;
    low = std::fma(high, k, -product) + low * k;
    high = product;
  }
  return high + low;
}

/// Terms n! / (x + k) ** s for k = 0, 1 … and x > 0. Uses logarithms where a term overflows or underflows.
template <std::size_t count>
std::array<double, count> terms_of(double n, double s, double x) {
  std::array<double, count> terms;
  const double product = factorial(n);
  for (std::size_t k = 0; k < count; ++k) terms[k] = x + static_cast<double>(k);
  vector_math::map_vectors<double, 1>({terms.data()}, terms.data(), count, [s](const Doubles& each) {
    return vector_math::power<vector_math::Digits::most>(each, Doubles(-s));
  });
  for (std::size_t k = 0; k < count; ++k)
    if (terms[k] *= product; !std::isnormal(terms[k]))
      terms[k] = exp(log_gamma(n + 1) - s * log(x + static_cast<double>(k)));
  return terms;
}

/// The sum over k >= 0 of n! / (x + k) ** (n + 1) for x > 0 and n >= 1, which is n! times the Hurwitz zeta function.
/// Computes ten terms, and the rest with the Euler-Maclaurin formula.
double sum_from(double n, double x) {
  // The Bernoulli numbers B(2j) divided by (2j)!.
  static constexpr double coefficients[] = {1.0 / 12,
                                            -1.0 / 720,
                                            1.0 / 30240,
                                            -1.0 / 1209600,
                                            1.0 / 47900160,
                                            -691.0 / 1307674368000.0,
                                            1.0 / 74724249600.0,
                                            -3617.0 / 10670622842880000.0};
  if (x == infinity) return 0;
  constexpr int direct = 10;
  const auto terms = terms_of<direct + 1>(n, n + 1, x);
  double sum = 0;
  for (int k = 0; k < direct; ++k) sum += terms[k];
  if (sum == infinity) return sum;
  x += direct;
  double power = terms[direct];  // n! x ** -(n + 2j) times (n + 1) (n + 2) … after each step
  sum += (std::isnormal(power) ? power * x / n : terms_of<1>(n - 1, n, x)[0]) + power / 2;
  power *= (n + 1) / x;
  for (int j = 0; j < 8; ++j) {
    sum += power * coefficients[j];
    power *= (n + 2 * j + 2) / x * ((n + 2 * j + 3) / x);
  }
  return sum;
}

/// x - floor(x), which is exact for x > 0.
double fraction(double x) {
  return x - std::floor(x);
}

/// The sum that sum_from computes, for any x that is not an integer below 1. The terms with negative x + k equal the
/// terms of a sum over positive numbers, negated if n is even. The first of these positive numbers is the fraction of
/// -x. Computing this fraction as 1 minus the fraction of x would lose the digits of an x just below an integer.
double sum_from_any(double n, double x) {
  if (x > 0) return sum_from(n, x);
  const double all = sum_from(n, fraction(-x)), below = std::isinf(all) ? all : all - sum_from(n, 1 - x);
  return sum_from(n, fraction(x)) + (std::fmod(n, 2) == 1 ? below : -below);
}
}  // namespace

double polygamma(double order, double x) {
  if (order == 0) return vector_math::digamma(Doubles(x)).get(0);
  const double sign = std::fmod(order, 2) == 0 ? -1 : 1;
  if (x != x || x == -infinity) return nan;
  if (x <= 0 && std::floor(x) == x) return sign > 0 ? infinity : x == 0 ? -std::copysign(infinity, x) : nan;
  return sign * sum_from_any(order, x);
}

namespace {
constexpr double most_terms = 1e8;

/// A gamma distribution of shape a, with rate 1.
struct GammaShape {
  double a;
  /// Log gamma(a + 1), or for large a the rest of Stirling's series for it, in which no large numbers cancel.
  double logarithm;
  explicit GammaShape(double shape) : a(shape) {
    const double z = 1 / (a * a);
    logarithm = is_small() ? vector_math::log_gamma_near(Doubles(a + 1)).get(0)
                           : (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z * (1.0 / 1680 - z / 1188)))) / a;
  }
  bool is_small() const { return a < 10; }
};

/// x ** a * exp(-x) / gamma(a + 1).
double leading_term(const GammaShape& shape, double x) {
  const double a = shape.a;
  if (shape.is_small()) return exp(a * log(x) - x - shape.logarithm);
  const double m = (x - a) / a;
  return exp(a * (log1p(m) - m) - shape.logarithm) / std::sqrt(2 * M_PI * a);
}

/// The quantile of the standard normal distribution, with an error below 0.0005 (Abramowitz and Stegun, 1964, 26.2.23).
double rough_normal_quantile(double p) {
  if (p > 0.5) return -rough_normal_quantile(1 - p);
  const double t = std::sqrt(-2 * log(p));
  return (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))) - t;
}
/// The same, with full precision where 1 - p has enough digits.
double normal_quantile(double p) {
  return p > 1e-12 ? M_SQRT2 * erfinv(2 * p - 1) : rough_normal_quantile(p);
}

/// P(a, x) and 1 - P(a, x). The smaller of the two has full precision.
struct Parts {
  double below = 0, above = 0;
};
Parts parts(const GammaShape& shape, double x) {
  const double a = shape.a;
  if (x == 0) return {0, 1};
  if (std::isinf(x)) return {1, 0};
  if (a > most_terms) {
    const double z = 3 * std::sqrt(a) * (expm1(log(x / a) / 3) + 1 / (9 * a));
    return {erfc(-z / M_SQRT2) / 2, erfc(z / M_SQRT2) / 2};
  }
  constexpr double least = std::numeric_limits<double>::epsilon() / 4, tiny = 1e-300;
  if (x < a + 1) {
    double sum = 1, term = 1;
    for (double n = 1; term > sum * least; ++n) sum += term *= x / (a + n);
    const double below = sum * leading_term(shape, x);
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
  const double above = fraction * a * leading_term(shape, x);
  return {1 - above, above};
}
}  // namespace

double gammainc(double a, double x) {
  return a > 0 && x >= 0 ? parts(GammaShape(a), x).below : nan;
}

double gammaincinv(double a, double p) {
  if (!(a > 0 && p >= 0 && p <= 1) || std::isinf(a)) return nan;
  if (p == 0) return 0;
  if (p == 1) return infinity;
  // The bound follows from P(a, x) < x ** a / gamma(a + 1).
  const GammaShape shape(a);
  double low = exp((log(p) + (shape.is_small() ? shape.logarithm : log_gamma(a + 1))) / a), high = infinity;
  const double root = 1 - 1 / (9 * a) + rough_normal_quantile(p) / (3 * std::sqrt(a));
  double x = std::max(low, root > 0 ? a * root * root * root : 0);
  if (x == 0) return 0;  // the quantile is below the smallest positive number
  for (int i = 0; i < 200; ++i) {
    const Parts at = parts(shape, x);
    const double beyond = p < 0.5 ? at.below - p : (1 - p) - at.above;
    if (beyond == 0) return x;
    (beyond > 0 ? high : low) = x;
    const double step = beyond * x / (a * leading_term(shape, x)), bend = step * ((a - 1) / x - 1) / 2;
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
  if (!(p >= 0 && p <= 1 && rate >= 0) || std::isinf(rate)) return nan;
  if (p == 1 && rate > 0) return infinity;
  if (p == 0 || rate == 0) return 0;
  const double z = rate > most_terms ? normal_quantile(p) : rough_normal_quantile(p);
  double k = std::max(0.0, std::floor(rate + z * std::sqrt(rate) + (z * z - 1) / 6));
  if (rate > most_terms) return k;
  double reached = parts(GammaShape(k + 1), rate).above, last = leading_term(GammaShape(k), rate);
  for (double more = 1; reached < p && more > 0;) {
    const double before = reached;
    reached += last *= rate / ++k;
    more = reached - before;
  }
  for (; k > 0 && reached - last >= p; --k) {
    reached -= last;
    last *= k / rate;
  }
  return k;
}

}  // namespace xtape::number_math
