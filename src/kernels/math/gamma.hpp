/// The logarithm of the gamma function and its derivative, for registers of float64.
#pragma once

#include <cmath>
#include <limits>
#include <xsimd/xsimd.hpp>

#include "kernels/math/special.hpp"

namespace xtape::vector_math {

/// The distance to the nearest whole number, which is exact. For the reflections, in which sin(pi x) and tan(pi x)
/// depend on it only.
[[gnu::always_inline]] inline Doubles from_whole(const Doubles& x) {
  return x - xsimd::nearbyint(x);
}

/// log gamma(x) for small x > 0. Recurrences lead to a polynomial between 1.25 and 2.5.
[[gnu::noinline]] inline Doubles log_gamma_near(Doubles x) {
  const Doubles one(1.0), two(2.0), middle(1.25), end(2.5);
  Doubles at = x, product(1.0);
  for (auto above = at >= end; xsimd::any(above); above = at >= end) {
    at = xsimd::select(above, at - one, at);
    product = xsimd::select(above, product * at, product);
  }
  // gamma(at + 1) = at gamma(at), and gamma(at + 2) = at (at + 1) gamma(at). d is exact.
  const auto low = at < middle, lowest = at < Doubles(0.5);
  const Doubles d = xsimd::select(lowest, at, xsimd::select(low, at - one, at - two));
  const Doubles factor = xsimd::select(lowest, at * (at + one), xsimd::select(low, at, product));
  const Doubles quotients =
      polynomial(d, 0x1.b0ee6072093cep-2, 0x1.4a34cc4a60fa6p-2, -0x1.13e001a55760dp-4, 0x1.51322ac7d8931p-6,
                 -0x1.e404fc218c557p-8, 0x1.7add6ead24b2fp-9, -0x1.38ac5c2e528f1p-10, 0x1.0b36afc6a0b9ap-11,
                 -0x1.d3fd4a7d4f970p-13, 0x1.a127927d22adfp-14, -0x1.78ded94b1e5dep-15, 0x1.5811f1440bedcp-16,
                 -0x1.3ca988a7346b2p-17, 0x1.254590089761cp-18, -0x1.137ac24392c4ep-19, 0x1.03957c5bfffebp-20,
                 -0x1.af770681c449dp-22, 0x1.bdcb694fe824dp-23, -0x1.9db0f678cb211p-23, 0x1.acfd7c347fbb1p-28,
                 0x1.afb50278530d2p-25, 0x1.44a2494351c70p-24);
  const Doubles logarithm = log(factor);
  return quotients * d + xsimd::select(low, -logarithm, logarithm);
}
/// log gamma(x) for x >= 10, by Stirling's series.
[[gnu::noinline]] inline Doubles log_gamma_far(Doubles x) {
  const Doubles z = Doubles(1.0) / (x * x);
  const Doubles series = horner(z, 1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188, -691.0 / 360360) / x;
  constexpr double half_log_two_pi = 0.9189385332046728;
  return (x - Doubles(0.5)) * (log(x) - Doubles(1.0)) + (series + Doubles(half_log_two_pi - 0.5));
}
/// log |gamma(x)|; inf at 0 and at negative integers. Near its zeros at negative x, only the absolute error is small.
inline Doubles log_gamma(const Doubles& x) {
  const Doubles zero(0.0), one(1.0), ten(10.0), end(infinity<double>);
  const auto negative = x < zero;
  const Doubles at = xsimd::select(negative, one - x, x);
  const auto near = at < ten;
  Doubles y = xsimd::all(near) ? log_gamma_near(at) : log_gamma_far(at);
  if (xsimd::any(near) && !xsimd::all(near)) y = xsimd::select(near, log_gamma_near(xsimd::select(near, at, one)), y);
  if (xsimd::any(negative)) {
    const Doubles part = from_whole(x), sine = xsimd::abs(sin(part * Doubles(M_PI)));
    const auto tiny = at == one;  // gamma(x) is 1 / x
    const Doubles of_negative = xsimd::select(tiny, -log(-x), Doubles(1.1447298858494002) - log(sine) - y);
    y = xsimd::select(negative, xsimd::select(part == zero, end, of_negative), y);
  }
  return xsimd::select((x == zero) | (xsimd::abs(x) == end), end, y);
}

/// The derivative of log_gamma: NaN at negative integers, -inf at 0 and inf at -0.
inline Doubles digamma(const Doubles& x) {
  const Doubles zero(0.0), one(1.0), ten(10.0), end(infinity<double>);
  const auto negative = x < zero;
  Doubles at = xsimd::select(negative, one - x, x), before = zero;
  for (auto below = at < ten; xsimd::any(below); below = at < ten) {
    before = xsimd::select(below, before - one / at, before);
    at = xsimd::select(below, at + one, at);
  }
  const Doubles z = one / (at * at);
  const Doubles series =
      z * horner(z, 1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12);
  Doubles y = before + (log(at) - Doubles(0.5) / at - series);
  if (xsimd::any(negative)) {
    const Doubles part = from_whole(x), odd(std::numeric_limits<double>::quiet_NaN());
    const Doubles reflected = y - Doubles(M_PI) / tan(part * Doubles(M_PI));
    y = xsimd::select(negative, xsimd::select((part == zero) | (x == -end), odd, reflected), y);
  }
  const Bits<double> opposite = bits_of(end) | (~bits_of(x) & Floats<double>::sign);
  return xsimd::select(x == zero, from_bits<double>(opposite), y);
}

}  // namespace xtape::vector_math
