/// Functions of registers of float32 and float64, computed by polynomials of a reduced argument. Errors are below 1.6
/// units in the last place. The bits are the same for all instruction sets with fused multiply-adds.
///
/// Each function has a core for ordinary arguments. Most have a separate function `…_at_ends` for registers in which a
/// lane is subnormal, infinite, NaN, or close to overflow. Both give the same bits in ordinary lanes.
///
/// The polynomials minimise the largest error relative to the function. Those of float32 are weighted least-squares
/// fits in high precision, with weights by Lawson's algorithm. Their coefficients were rounded one after the other,
/// from the lowest, and the others were fitted again each time.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <xsimd/xsimd.hpp>

#include "kernels/math/lanes.hpp"

namespace xtape::vector_math {

/// What a type's functions have to know of it. x + rounder - rounder rounds x to an integer, which is in the low bits
/// of x + rounder.
template <class T>
struct Floats;
template <>
struct Floats<double> {
  using Word = std::uint64_t;
  static constexpr int mantissa = 52;
  static constexpr Word bias = 1023, sign = 0x8000000000000000, one = 0x3ff0000000000000,
                        root = 0x3fe6a09e667f3bcd;  // root: of sqrt(1/2)
  static constexpr double rounder = 0x1.8p52;
  static constexpr double ln2_high = 0x1.62e42fee00000p-1;  // products with integers up to 2^20 are exact
  static constexpr double ln2_low = 0x1.a39ef35793c76p-33;
  static constexpr double ordinary = 670;    // up to this |x|, no intermediate value of e^x is subnormal or infinite
  static constexpr double beyond = 800;      // from here on, e^x is 0 or infinite
  static constexpr double large = 0x1p1000;  // less is ordinary for log1p
};
template <>
struct Floats<float> {
  using Word = std::uint32_t;
  static constexpr int mantissa = 23;
  static constexpr Word bias = 127, sign = 0x80000000, one = 0x3f800000, root = 0x3f3504f3;
  static constexpr float rounder = 0x1.8p23f;
  static constexpr float ln2_high = 0x1.62e4p-1f;  // products with integers up to 2^8 are exact
  static constexpr float ln2_low = 0x1.7f7d1cp-20f;
  static constexpr float ordinary = 86;
  static constexpr float beyond = 110;
  static constexpr float large = 0x1p120f;
};
template <class T>
inline constexpr T infinity = std::numeric_limits<T>::infinity();
template <class T>
inline constexpr bool narrow = std::is_same_v<T, float>;

/// The same lanes as integers.
template <class T>
using Bits = typename Register<typename Floats<T>::Word, xsimd::batch<T>::size>::type;
template <class T>
inline Bits<T> bits_of(const xsimd::batch<T>& x) {
  return std::bit_cast<Bits<T>>(x);
}
template <class T>
inline xsimd::batch<T> from_bits(const Bits<T>& bits) {
  return std::bit_cast<xsimd::batch<T>>(bits);
}

/// y with the sign of x, for a y that is not negative, or has this sign but for a zero.
template <class T>
[[gnu::always_inline]] inline xsimd::batch<T> with_sign(const xsimd::batch<T>& y, const xsimd::batch<T>& x) {
  return from_bits<T>(bits_of(y) | (bits_of(x) & Floats<T>::sign));
}

/// x, but not above (below) `end`. NaN stays: if an operand is NaN, x86 returns the second one, and NEON NaN.
template <class T>
inline xsimd::batch<T> at_most(const xsimd::batch<T>& x, T end) {
  return xsimd::min(xsimd::batch<T>(end), x);
}
template <class T>
inline xsimd::batch<T> at_least(const xsimd::batch<T>& x, T end) {
  return xsimd::max(xsimd::batch<T>(end), x);
}

/// The polynomial with these coefficients, starting with the lowest.
template <class T, class... Numbers>
[[gnu::always_inline]] inline xsimd::batch<T> horner(const xsimd::batch<T>& x, T lowest, Numbers... others) {
  if constexpr (sizeof...(others) == 0)
    return xsimd::batch<T>(lowest);
  else
    return fused(horner(x, others...), x, xsimd::batch<T>(lowest));
}
/// The same. Its even and odd parts form two shorter dependency chains.
template <class T, class... Numbers>
[[gnu::always_inline]] inline xsimd::batch<T> polynomial(const xsimd::batch<T>& x, Numbers... numbers) {
  constexpr std::size_t n = sizeof...(numbers);
  const T c[n] = {numbers...};
  return [&]<std::size_t... even, std::size_t... odd>(std::index_sequence<even...>, std::index_sequence<odd...>) {
    const xsimd::batch<T> square = x * x;
    return fused(horner(square, c[2 * odd + 1]...), x, horner(square, c[2 * even]...));
  }
  (std::make_index_sequence<(n + 1) / 2>{}, std::make_index_sequence<n / 2>{});
}

/// x = n ln 2 + rest.
template <class T>
struct Powers {
  xsimd::batch<T> rest, n;
  Bits<T> end;  ///< n + bias in the low bits
};
template <class T>
inline constexpr T biased_rounder = Floats<T>::rounder + Floats<T>::bias;
template <class T>
[[gnu::always_inline]] inline Powers<T> powers_of(const xsimd::batch<T>& x) {
  using Batch = xsimd::batch<T>;
  const Batch t = fused(x, Batch(T(M_LOG2E)), Batch(biased_rounder<T>)), n = t - Batch(biased_rounder<T>);
  const Batch rest = fused_away(n, Batch(Floats<T>::ln2_low), fused_away(n, Batch(Floats<T>::ln2_high), x));
  return {rest, n, bits_of(t)};
}
/// Returns 2^n, where n + bias is in the low bits of `end`. 2^n must be a normal number.
template <class T>
[[gnu::always_inline]] inline xsimd::batch<T> power_of_two(const Bits<T>& end) {
  return from_bits<T>(end << Floats<T>::mantissa);
}
/// (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2.
template <class T>
[[gnu::always_inline]] inline xsimd::batch<T> short_rest(const xsimd::batch<T>& r) {
  if constexpr (narrow<T>)
    return polynomial(r, 0.5f, 0x1.5554b6p-3f, 0x1.5555aap-5f, 0x1.12240ap-7f, 0x1.6c67b2p-10f);
  else
    return fused(polynomial(r, 0x1.555555555555ap-3, 0x1.5555555553adfp-5, 0x1.111111110f0d3p-7, 0x1.6c16c17a10767p-10,
                            0x1.a01a01b2bb722p-13, 0x1.a019b35dc911bp-16, 0x1.71ddf0735541fp-19, 0x1.2897aab30c87cp-22,
                            0x1.af6d34250d420p-26),
                 r, xsimd::batch<T>(0.5));
}
/// scale e^r for |r| <= ln 2 / 2.
template <class T>
[[gnu::always_inline]] inline xsimd::batch<T> scaled_exp(const xsimd::batch<T>& r, const xsimd::batch<T>& scale) {
  const xsimd::batch<T> rest = short_rest(r), one(T(1));
  if constexpr (narrow<T>)
    return fused(fused(rest, r, one), r, one) * scale;
  else
    return fused(scale, fused(r * r, rest, r), scale);
}

/// e^x for |x| < ordinary.
template <class T>
[[gnu::always_inline]] inline xsimd::batch<T> core_exp(const xsimd::batch<T>& x) {
  const Powers<T> powers = powers_of(x);
  return scaled_exp(powers.rest, power_of_two<T>(powers.end));
}
/// 2^power e^x for any x.
template <class T>
[[gnu::noinline]] inline xsimd::batch<T> exp_at_ends(xsimd::batch<T> given, T power = 0) {
  using Batch = xsimd::batch<T>;
  const Powers<T> powers = powers_of(at_least(at_most(given, Floats<T>::beyond), -Floats<T>::beyond));
  const Batch rounder(biased_rounder<T>), t = fused(powers.n, Batch(T(0.5)), rounder), half = t - rounder;
  const Batch scale = power_of_two<T>(bits_of(t)),
              other = power_of_two<T>(bits_of(powers.n - half + (rounder + power)));
  return scaled_exp(powers.rest, scale) * other;
}
template <class T>
[[gnu::always_inline]] inline xsimd::batch<T> exp(const xsimd::batch<T>& x) {
  if (xsimd::all(xsimd::abs(x) < xsimd::batch<T>(Floats<T>::ordinary))) [[likely]]
    return core_exp(x);
  return exp_at_ends(x);
}
/// e^x without a branch, with two exceptions for float32: a subnormal result may be 0, and a result of at least 2^127.5
/// is infinity.
template <class T>
[[gnu::always_inline]] inline xsimd::batch<T> clipped_exp(const xsimd::batch<T>& x) {
  if constexpr (narrow<T>)
    return core_exp(at_least(at_most(x, 88.8f), -88.3f));  // the powers of two are from -127 to 128
  else
    return exp(x);
}

/// e^x - 1 for |x| < ordinary, as a sum. high is exact for small |n|.
template <class T>
struct HighLow {
  xsimd::batch<T> high, low;
};
template <class T>
[[gnu::always_inline]] inline HighLow<T> core_expm1(const xsimd::batch<T>& x) {
  using Batch = xsimd::batch<T>;
  const Powers<T> powers = powers_of(x);
  const Batch r = powers.rest, scale = power_of_two<T>(powers.end);
  const Batch high = fused(scale, fused_away(powers.n, Batch(Floats<T>::ln2_high), x), scale - Batch(T(1)));
  return {high, scale * fused(r * r, short_rest(r), powers.n * Batch(-Floats<T>::ln2_low))};
}
template <class T>
[[gnu::always_inline]] inline xsimd::batch<T> expm1(const xsimd::batch<T>& x) {
  using Batch = xsimd::batch<T>;
  const auto inside = xsimd::abs(x) < Batch(Floats<T>::ordinary);
  const auto [high, low] = core_expm1(xsimd::select(inside, x, Batch(T(0))));
  const Batch y = with_sign(high + low, x);  // -0 stays
  if (xsimd::all(inside)) [[likely]]
    return y;
  return xsimd::select(inside, y, exp_at_ends(x) - Batch(T(1)));
}

/// k and f with x = 2^k (1 + f), where 1 + f is between sqrt(1/2) and sqrt(2).
template <class T>
struct Logarithm {
  xsimd::batch<T> k, f;
  Bits<T> exponent;  ///< k + bias
};
template <class T>
[[gnu::always_inline]] inline Logarithm<T> split(const xsimd::batch<T>& x) {
  using F = Floats<T>;
  using Batch = xsimd::batch<T>;
  constexpr T shift = F::rounder / T(1.5);  // its low bits are an integer
  const Bits<T> bits = bits_of(x) + (F::one - F::root), exponent = bits >> F::mantissa;
  return {from_bits<T>(exponent | std::bit_cast<typename F::Word>(shift)) - Batch(shift + F::bias),
          from_bits<T>((bits & ((typename F::Word{1} << F::mantissa) - 1)) + F::root) - Batch(T(1)), exponent};
}
/// k ln 2_high + log(1 + f) + low. For float64, with s = f / (2 + f) as in FDLIBM.
template <class T>
[[gnu::always_inline]] inline xsimd::batch<T> joined_log(const xsimd::batch<T>& k, const xsimd::batch<T>& f,
                                                         const xsimd::batch<T>& low) {
  using Batch = xsimd::batch<T>;
  const Batch high(Floats<T>::ln2_high), half(T(0.5));
  if constexpr (narrow<T>) {
    const Batch z = f * f;
    const Batch rest = polynomial(f, 0x1.555554p-2f, -0x1.000226p-2f, 0x1.99a01cp-3f, -0x1.54728ap-3f, 0x1.22d93p-3f,
                                  -0x1.0d8246p-3f, 0x1.055eaep-3f, -0x1.38c974p-4f);
    return fused(k, high, f + fused_away(z, half, fused(z * f, rest, low)));
  } else {
    const Batch s = f / (f + Batch(2.0)), z = s * s, half_square = half * f * f;
    const Batch rest =
        z * polynomial(z, 0x1.5555555555592p-1, 0x1.999999997fcc6p-2, 0x1.2492494204f62p-2, 0x1.c71c51f530f7cp-3,
                       0x1.746643be1f8eep-3, 0x1.39a12e4c222fbp-3, 0x1.2f0b783c4adf6p-3);
    return fused(k, high, f - (half_square - fused(s, half_square + rest, low)));
  }
}
template <class T>
[[gnu::always_inline]] inline xsimd::batch<T> core_log(const xsimd::batch<T>& x) {
  using Batch = xsimd::batch<T>;
  const Logarithm<T> parts = split(x);
  return joined_log(parts.k, parts.f, parts.k * Batch(Floats<T>::ln2_low));
}
/// A logarithm of x for any x, given its value for positive and finite x.
template <class T>
[[gnu::always_inline]] inline xsimd::batch<T> log_with_ends(const xsimd::batch<T>& x, const xsimd::batch<T>& finite) {
  using Batch = xsimd::batch<T>;
  const Batch zero(T(0));
  const Batch odd = xsimd::select(x < zero, Batch(std::numeric_limits<T>::quiet_NaN()),
                                  xsimd::select(x == zero, Batch(-infinity<T>), x));
  return xsimd::select((x > zero) & (x < Batch(infinity<T>)), finite, odd);
}
/// log x for any x. For a positive subnormal x, computes log(2^54 x) - 54 ln 2.
template <class T>
[[gnu::noinline]] inline xsimd::batch<T> log_at_ends(xsimd::batch<T> x) {
  using Batch = xsimd::batch<T>;
  const auto subnormal = x < Batch(std::numeric_limits<T>::min());
  const Batch y = core_log(xsimd::select(subnormal, x * Batch(T(0x1p54)), x));
  return log_with_ends(x, xsimd::select(subnormal, y - Batch(T(54 * M_LN2)), y));
}
template <class T>
[[gnu::always_inline]] inline xsimd::batch<T> log(const xsimd::batch<T>& x) {
  using Batch = xsimd::batch<T>;
  if (xsimd::all((x >= Batch(std::numeric_limits<T>::min())) & (x < Batch(infinity<T>)))) [[likely]]
    return core_log(x);
  return log_at_ends(x);
}

/// log(1 + x) for -1 < x < large. The rounding error d of 1 + f adds d / (1 + f), which is d (1 - f) up to the last
/// bits.
template <class T>
[[gnu::always_inline]] inline xsimd::batch<T> core_log1p(const xsimd::batch<T>& x) {
  using Batch = xsimd::batch<T>;
  const Batch one(T(1)), sum = x + one, lost = x - (sum - one);
  const Logarithm<T> parts = split(sum);
  const Batch d = lost * from_bits<T>((2 * Floats<T>::bias - parts.exponent) << Floats<T>::mantissa);
  return joined_log(parts.k, parts.f, fused(d, one - parts.f, parts.k * Batch(Floats<T>::ln2_low)));
}
template <class T>
[[gnu::noinline]] inline xsimd::batch<T> log1p_at_ends(xsimd::batch<T> x) {
  using Batch = xsimd::batch<T>;
  const auto inside = (x > Batch(T(-1))) & (x < Batch(Floats<T>::large));
  const Batch y = with_sign(core_log1p(xsimd::select(inside, x, Batch(T(0)))), x);  // -0 stays
  return xsimd::select(inside, y, log_at_ends(x + Batch(T(1))));
}
template <class T>
[[gnu::always_inline]] inline xsimd::batch<T> log1p(const xsimd::batch<T>& x) {
  using Batch = xsimd::batch<T>;
  if (xsimd::all((x > Batch(T(-1))) & (x < Batch(Floats<T>::large)))) [[likely]]
    return with_sign(core_log1p(x), x);
  return log1p_at_ends(x);
}

/// tanh |x| = q = e / (e + 2), where e = expm1(2 |x|). The residual e - q (e + 2) corrects the rounding errors of e, e
/// + 2 and q.
template <class T>
[[gnu::always_inline]] inline xsimd::batch<T> tanh(const xsimd::batch<T>& x) {
  using Batch = xsimd::batch<T>;
  const Batch least = at_most(xsimd::abs(x), T(narrow<T> ? 10 : 20)), two(T(2));
  const auto [high, low] = core_expm1(least + least);
  const Batch e = high + low, sum = e + two, lost = high - (sum - two) + low;
  const Batch inverse = quotient(Batch(T(1)), sum), q = e * inverse;
  const Batch residual = fused_away(q, lost, fused_away(q, sum, high) + low);
  return with_sign(fused(residual, inverse, q), x);
}

/// erf x for |x| <= 1.
[[gnu::always_inline]] inline xsimd::batch<double> erf_near_zero(const xsimd::batch<double>& x) {
  return fused(
      x,
      polynomial(x * x, 0x1.06eba8214db69p-3, -0x1.812746b0379c2p-2, 0x1.ce2f21a041017p-4, -0x1.b82ce31206285p-6,
                 0x1.565bccfa9a25ep-8, -0x1.c02db072e8efbp-11, 0x1.f9a2bf7323192p-14, -0x1.f4ca948fc033ap-17,
                 0x1.b9827ad66c41ap-20, -0x1.5c16e20063159p-23, 0x1.d7848f20d7367p-27, -0x1.acdff40c97155p-31),
      x);
}
/// Uses a polynomial up to |x| = 1 (float32: 0.9). For larger |x|, uses 1 - e^(-x^2) times a polynomial of
/// 1 / (1 + |x|), or for float32 1 - e^-p, where p is a polynomial.
template <class T>
inline xsimd::batch<T> erf(const xsimd::batch<T>& x) {
  using Batch = xsimd::batch<T>;
  const Batch size = xsimd::abs(x);
  if constexpr (narrow<T>) {
    const Batch square = x * x;
    const Batch low = fused(x,
                            horner(square, 0x1.06eba6p-3f, -0x1.8126eep-2f, 0x1.ce1c18p-4f, -0x1.b6a74cp-6f,
                                   0x1.47f3ep-8f, -0x1.3d52c4p-11f),
                            x);
    const Batch t = at_most(size, 4.0f);
    const Batch power = t * horner(t, -0x1.20e6bp+0f, -0x1.457a5cp-1f, -0x1.af4196p-4f, 0x1.774bb6p-6f, -0x1.a60ea2p-9f,
                                   0x1.c20e12p-13f);
    return xsimd::select(size > Batch(0.9f), with_sign(Batch(1.0f) - core_exp(power), x), low);
  } else {
    const Batch low = erf_near_zero(x);
    const auto large = size > Batch(1.0);
    if (!xsimd::any(large)) return low;
    const Batch least = at_most(size, 6.0);
    const Batch share =
        polynomial(Batch(1.0) / (least + Batch(1.0)), -0x1.8076bb11e3c8dp-18, 0x1.20fce64dc78d1p-1,
                   0x1.1e83a45561e69p-1, 0x1.5746063735e39p-2, -0x1.642d977449288p-1, 0x1.91462f8ecc000p+0,
                   -0x1.236b641bc99e9p+3, 0x1.abc05b5a8f14ep+4, -0x1.6b9722aa04abep+5, 0x1.8a04576a92074p+5,
                   -0x1.11531000c004bp+5, 0x1.c00e7d339b921p+3, -0x1.4cd7ac34def49p+1);
    const Batch high = fused_away(core_exp(-(least * least)), share, Batch(1.0));
    return xsimd::select(large, with_sign(high, x), low);
  }
}

}  // namespace xtape::vector_math
