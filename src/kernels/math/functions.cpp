#include "kernels/math/functions.hpp"

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

}  // namespace xtape
