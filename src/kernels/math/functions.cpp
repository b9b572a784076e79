#include "kernels/math/functions.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/elements/scalar.hpp"

namespace xtape {

namespace {
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// gamma(s) / x ** s for x > 0, where `gamma` is gamma(s). Uses logarithms if this quotient overflows or underflows.
double term_of(double gamma, double s, double x) {
  const double direct = gamma * std::pow(x, -s);
  return std::isnormal(direct) ? direct : std::exp(log_gamma(s) - s * std::log(x));
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
  const double factorial = std::tgamma(n + 1);
  double sum = 0;
  for (int k = 0; k < 10; ++k, x += 1) sum += term_of(factorial, n + 1, x);
  if (sum == infinity) return sum;
  double power = term_of(factorial, n + 1, x);  // n! x ** -(n + 2j) times (n + 1) (n + 2) … after each step
  sum += term_of(factorial / n, n, x) + power / 2;
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

template <class T, class F>
TileFunction loop_of_one(F f) {
  return [f](const Tile& tile) {
    const T* const x = static_cast<const T*>(tile.in[0]);
    T* const y = static_cast<T*>(tile.out[0]);
    for (std::int64_t i = 0; i < tile.count; ++i) y[i] = static_cast<T>(f(x[i]));
  };
}
template <class T, class F>
TileFunction loop_of_two(F f) {
  return [f](const Tile& tile) {
    const T *const a = static_cast<const T*>(tile.in[0]), *const b = static_cast<const T*>(tile.in[1]);
    T* const y = static_cast<T*>(tile.out[0]);
    for (std::int64_t i = 0; i < tile.count; ++i) y[i] = static_cast<T>(f(a[i], b[i]));
  };
}
}  // namespace

TileFunction tile_of(double (*function)(double), Dtype dtype) {
  return with_floating(dtype, [&](auto scalar) { return loop_of_one<decltype(scalar)>(function); });
}
TileFunction tile_of(double (*function)(double, double), Dtype dtype) {
  return with_floating(dtype, [&](auto scalar) { return loop_of_two<decltype(scalar)>(function); });
}
TileFunction tile_of(double (*function)(double, double), double order, Dtype dtype) {
  return with_floating(dtype, [&](auto scalar) {
    return loop_of_one<decltype(scalar)>([function, order](double x) { return function(order, x); });
  });
}
TileFunction tile_of(std::int64_t (*function)(std::int64_t, std::int64_t), Dtype dtype) {
  return with_index(dtype, [&](auto scalar) { return loop_of_two<decltype(scalar)>(function); });
}

double inverse_erf(double x) {
  if (!(std::abs(x) < 1)) return std::abs(x) == 1 ? std::copysign(infinity, x) : nan;
  if (std::abs(x) < 1e-9) return x / M_2_SQRTPI;
  const double a = std::abs(x), tail = 1 - a;
  const double logarithm = std::log(tail * (1 + a)), middle = 2 / (M_PI * 0.147) + logarithm / 2;
  double y = std::sqrt(std::sqrt(middle * middle - logarithm / 0.147) - middle);
  for (int i = 0; i < 4; ++i) {
    // Near 1, erf is too coarse to resolve its distance from 1, but erfc is not.
    const double residual = a > 0.5 ? tail - std::erfc(y) : std::erf(y) - a;
    const double step = residual * std::exp(y * y) / M_2_SQRTPI;
    y -= step / (1 + y * step);
  }
  return std::copysign(y, x);
}

double log_gamma(double x) {
  int sign = 0;
  return lgamma_r(x, &sign);
}

double digamma(double x) {
  if (x == 0) return std::copysign(infinity, -x);
  if (x < 0) {
    const double part = x - std::nearbyint(x);  // exact
    return part == 0 || x == -infinity ? nan : digamma(1 - x) - M_PI / std::tan(M_PI * part);
  }
  if (x == infinity) return x;
  double before = 0;
  for (; x < 10; x += 1) before -= 1 / x;
  const double z = 1 / (x * x);
  const double series =
      z *
      (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760 - z / 12))))));
  return before + (std::log(x) - 0.5 / x - series);
}

double polygamma(double order, double x) {
  if (order == 0) return digamma(x);
  const double sign = std::fmod(order, 2) == 0 ? -1 : 1;
  if (x != x || x == -infinity) return nan;
  if (x <= 0 && std::floor(x) == x) return sign > 0 ? infinity : x == 0 ? -std::copysign(infinity, x) : nan;
  return sign * sum_from_any(order, x);
}

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
