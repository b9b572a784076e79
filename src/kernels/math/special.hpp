/// More functions of registers of float64, within 4 units in the last place. They are compositions of the functions
/// in elementary.hpp, waves.hpp and power.hpp, and polynomials that nearly minimise the largest error.
#pragma once

#include <array>
#include <cmath>
#include <limits>
#include <xsimd/xsimd.hpp>

#include "kernels/math/power.hpp"
#include "kernels/math/waves.hpp"

namespace xtape::vector_math {

using Doubles = xsimd::batch<double>;
inline constexpr double pi_low = 0x1.1a62633145c07p-53;  ///< pi = M_PI + pi_low

/// The angle of the point (b, a) for a and b that are not negative, or if `mirrored`, of (-b, a). Adds atan(t) to a
/// multiple of pi / 4, with |t| <= tan(pi / 8).
[[gnu::always_inline]] inline Doubles angle_of_sizes(Doubles a, Doubles b, const xsimd::batch_bool<double>& mirrored) {
  const Doubles zero(0.0), one(1.0);
  const Doubles scale = xsimd::select((a > Doubles(0x1p1000)) | (b > Doubles(0x1p1000)), Doubles(0.25), one);
  a *= scale, b *= scale;  // their sum is finite
  const auto steep = a > b * Doubles(2.414213562373095), slanted = a > b * Doubles(0.41421356237309503);
  const Doubles above = xsimd::select(steep, -b, xsimd::select(slanted, a - b, a));
  const Doubles below = xsimd::select(steep, a, xsimd::select(slanted, a + b, b));
  const Doubles size = xsimd::select(above == zero, zero, above / below);
  const Doubles eighths = xsimd::select(steep, Doubles(2.0), xsimd::select(slanted, one, zero));
  const Doubles t = xsimd::select(mirrored, -size, size), m = xsimd::select(mirrored, Doubles(4.0) - eighths, eighths);
  const Doubles quarter(M_PI_4), base = m * quarter, base_low = fused(m, Doubles(pi_low / 4), exact(m, quarter, -base));
  const Doubles z = t * t;
  const Doubles rest =
      polynomial(z, -0x1.5555555555555p-2, 0x1.9999999999953p-3, -0x1.249249248d7e6p-3, 0x1.c71c71c3045bap-4,
                 -0x1.745d165de250bp-4, 0x1.3b1392d7e8f74p-4, -0x1.110e87e6a8722p-4, 0x1.e19a10824a50bp-5,
                 -0x1.ac7a7bd8f05c0p-5, 0x1.74dd67f0d3109p-5, -0x1.1b32a3266af2ep-5, 0x1.0ad10221730d6p-6);
  return base + (t + fused(t * z, rest, base_low));
}
inline Doubles atan(const Doubles& x) {
  return with_sign(angle_of_sizes(xsimd::abs(x), Doubles(1.0), xsimd::batch_bool<double>(false)), x);
}
inline Doubles atan2(const Doubles& y, const Doubles& x) {
  const Doubles a = xsimd::abs(y), b = xsimd::abs(x), one(1.0), end(infinity<double>);
  const auto both = (a == end) & (b == end), negative = xsimd::copysign(one, x) < Doubles(0.0);
  const Doubles angle = angle_of_sizes(xsimd::select(both, one, a), xsimd::select(both, one, b), negative);
  return xsimd::select((x == x) & (y == y), with_sign(angle, y), x + y);
}

/// The arc sine or the arc cosine of x. For |x| > 1/2, uses the arc sine of sqrt((1 - |x|) / 2), which is half of the
/// arc cosine of |x|.
template <bool cosine>
inline Doubles arc(const Doubles& x) {
  const Doubles size = xsimd::abs(x), half(0.5), one(1.0), two(2.0), zero(0.0), quarter_turn(M_PI_2);
  const auto large = size > half, negative = x < zero;
  const Doubles z = xsimd::select(large, (one - size) * half, x * x), s = xsimd::select(large, xsimd::sqrt(z), size);
  const Doubles rest =
      s * z *
      polynomial(z, 0x1.5555555555555p-3, 0x1.3333333333388p-4, 0x1.6db6db6dac1e0p-5, 0x1.f1c71c7a52ba3p-6,
                 0x1.6e8ba123e494cp-6, 0x1.1c4efce23019fp-6, 0x1.c990ad3d8fdcap-7, 0x1.7b027ee1dd585p-7,
                 0x1.3b49de7121487p-7, 0x1.31622469ce5adp-7, 0x1.8f193743418ffp-9, 0x1.406192d124629p-6,
                 -0x1.3b416bb7d9257p-6, 0x1.e529c6fce9bb4p-6);
  Doubles factor, base;
  if constexpr (cosine) {
    const Doubles away = xsimd::select(large, two, -one);
    factor = xsimd::select(negative, -away, away);
    base = xsimd::select(large, xsimd::select(negative, Doubles(M_PI), zero), quarter_turn);
  } else {
    factor = xsimd::select(large, -two, one);
    base = xsimd::select(large, quarter_turn, zero);
  }
  const Doubles angle = fused(factor, s, base) + fused(factor, rest, base * Doubles(pi_low / M_PI));
  return cosine ? angle : with_sign(angle, x);
}
inline Doubles asin(const Doubles& x) {
  return arc<false>(x);
}
inline Doubles acos(const Doubles& x) {
  return arc<true>(x);
}

/// (e + e / (e + 1)) / 2, where e = expm1(|x|).
inline Doubles sinh(const Doubles& x) {
  const Doubles size = xsimd::abs(x), one(1.0);
  const auto inside = size < Doubles(Floats<double>::ordinary);
  const auto [high, low] = core_expm1(xsimd::select(inside, size, Doubles(0.0)));
  const Doubles e = high + low, y = with_sign((high + (low + e / (e + one))) * Doubles(0.5), x);
  if (xsimd::all(inside)) [[likely]]
    return y;
  return xsimd::select(inside, y, with_sign(exp_at_ends(size, -1.0), x));
}
inline Doubles cosh(const Doubles& x) {
  const Doubles size = xsimd::abs(x), half(0.5);
  const auto inside = size < Doubles(Floats<double>::ordinary);
  const Doubles e = core_exp(xsimd::select(inside, size, Doubles(0.0))), y = fused(e, half, half / e);
  if (xsimd::all(inside)) [[likely]]
    return y;
  return xsimd::select(inside, y, exp_at_ends(size, -1.0));
}

/// log(1 + rest) where size <= 2^28, and log(2 size) where size is larger.
[[gnu::always_inline]] inline Doubles log1p_or_twice(const Doubles& rest, const Doubles& size) {
  const auto large = size > Doubles(0x1p28);
  const Doubles y = core_log1p(rest);
  if (!xsimd::any(large)) [[likely]]
    return y;
  return xsimd::select(large, log(size) + Doubles(M_LN2), y);
}
inline Doubles asinh(const Doubles& x) {
  const Doubles size = xsimd::abs(x), square = size * size, one(1.0);
  const Doubles rest = size + square / (one + xsimd::sqrt(fused(size, size, one)));
  return with_sign(log1p_or_twice(rest, size), x);
}
inline Doubles acosh(const Doubles& x) {
  const Doubles one(1.0), t = x - one, rest = t + xsimd::sqrt(fused(t, t, t + t));
  return xsimd::select(x < one, Doubles(std::numeric_limits<double>::quiet_NaN()), log1p_or_twice(rest, x));
}
inline Doubles atanh(const Doubles& x) {
  const Doubles size = xsimd::abs(x);
  return with_sign(Doubles(0.5) * log1p((size + size) / (Doubles(1.0) - size)), x);
}

inline Doubles exp2(const Doubles& x) {
  const Doubles given = at_least(at_most(x, 1100.0), -1100.0), rounder(biased_rounder<double>), half(0.5);
  const Doubles n = given + rounder - rounder, t = fused(n, half, rounder), part = t - rounder;
  return scaled_exp((given - n) * Doubles(M_LN2), power_of_two<double>(bits_of(t))) *
         power_of_two<double>(bits_of(n - part + rounder));
}
/// log x times `factor`, which is high + low. If `binary`, the factor is 1 / ln 2, and powers of two are exact.
template <bool binary>
inline Doubles log_by(const Doubles& x, double factor, double factor_low) {
  const auto subnormal = x < Doubles(std::numeric_limits<double>::min());
  const Logarithm<double> parts = split(xsimd::select(subnormal, x * Doubles(0x1p54), x));
  const Doubles k = xsimd::select(subnormal, parts.k - Doubles(54.0), parts.k), by(factor), zero(0.0);
  const auto [high, low] = precise_log(binary ? zero : k, parts.f);
  const Doubles product = high * by;
  const Doubles y = product + (exact(high, by, -product) + fused(low, by, high * Doubles(factor_low)));
  return log_with_ends(x, binary ? k + y : y);
}
inline Doubles log2(const Doubles& x) {
  return log_by<true>(x, 0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56);
}
inline Doubles log10(const Doubles& x) {
  return log_by<false>(x, 0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57);
}

/// Uses 1 - erf x for small |x|, otherwise e^(-x^2) times a polynomial of (|x| - 4) / (|x| + 4) over 1 + 2 |x|
/// (Shepherd and Laframboise, 1981).
inline Doubles erfc(const Doubles& x) {
  const Doubles size = at_most(xsimd::abs(x), 28.0), one(1.0), two(2.0), four(4.0);
  const Doubles share = polynomial(
      (size - four) / (size + four), 0x1.3ba5916e9fd7fp+0, -0x1.1df1ad154a28ep-3, 0x1.f7f5df66fc17fp-7,
      0x1.16ecefcfa5214p-4, -0x1.9ddb23c3e0c24p-4, 0x1.7fee004e16d41p-4, -0x1.0fb06dfee4790p-4, 0x1.3079edf5d9d05p-5,
      -0x1.0962386da3254p-6, 0x1.49c672b9685cep-8, -0x1.8d4aaa8fbedbcp-11, -0x1.a1df4a1e543bcp-13,
      0x1.3be12bafabe1fp-13, -0x1.99551e5f87e20p-16, -0x1.78a738afaf645p-17, 0x1.7f01a118598aep-18,
      0x1.400a0021a32f1p-22, -0x1.b9339da7bf70bp-21, 0x1.31744dd9b56d0p-24, 0x1.cad9b27d6d663p-24,
      -0x1.1904891a069b4p-26, -0x1.af097381d257bp-27, 0x1.afe473b552685p-30, 0x1.0967e527911a9p-30);
  const Doubles square = size * size, e = exp(-square), power = fused_away(e, exact(size, size, -square), e);
  const Doubles tail = power * (share / fused(two, size, one));
  const Doubles outer = xsimd::select(x < Doubles(0.0), two - tail, tail);
  return xsimd::select(size < Doubles(0.5), one - erf_near_zero(x), outer);
}
/// The inverse of erf; +-inf at +-1, NaN outside [-1, 1]. Starts from the approximation of Winitzki (2008) and refines
/// it with Halley's method.
inline Doubles erfinv(const Doubles& x) {
  const Doubles a = xsimd::abs(x), one(1.0), tail = one - a, scale(M_2_SQRTPI);
  const Doubles logarithm = log(tail * (one + a)), middle = fused(logarithm, Doubles(0.5), Doubles(2 / (M_PI * 0.147)));
  Doubles y = xsimd::sqrt(xsimd::sqrt(fused(middle, middle, logarithm * Doubles(-1 / 0.147))) - middle);
  for (int i = 0; i < 4; ++i) {
    // Near 1, erf is too coarse to resolve its distance from 1, but erfc is not.
    const Doubles residual = xsimd::select(a > Doubles(0.5), tail - erfc(y), erf(y) - a);
    const Doubles step = residual * exp(y * y) / scale;
    y -= step / fused(y, step, one);
  }
  y = xsimd::select(a < Doubles(1e-9), a / scale, y);
  const Doubles odd(std::numeric_limits<double>::quiet_NaN());
  return with_sign(xsimd::select(a < one, y, xsimd::select(a == one, Doubles(infinity<double>), odd)), x);
}

inline Doubles hypot(const Doubles& x, const Doubles& y) {
  const Doubles a = xsimd::max(xsimd::abs(x), xsimd::abs(y)), b = xsimd::min(xsimd::abs(x), xsimd::abs(y));
  const Doubles up(0x1p600), down(0x1p-600), one(1.0), end(infinity<double>);
  const auto large = a > Doubles(0x1p500), small = a < Doubles(0x1p-450);
  const Doubles scale = xsimd::select(large, down, xsimd::select(small, up, one)), p = a * scale, q = b * scale;
  const Doubles root = xsimd::sqrt(fused(p, p, q * q)) * xsimd::select(large, up, xsimd::select(small, down, one));
  const Doubles given = xsimd::select((x == x) & (y == y), root, x + y);
  return xsimd::select((xsimd::abs(x) == end) | (xsimd::abs(y) == end), end, given);
}

}  // namespace xtape::vector_math
