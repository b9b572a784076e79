/// Functions of registers of float64, computed by polynomials of a reduced argument. Errors are below 2 units in the
/// last place.
///
/// Each function has a core for ordinary arguments, and a separate function `…_at_ends` for registers in which a lane
/// is subnormal, infinite, NaN, or close to overflow. Both give the same bits in ordinary lanes.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <xsimd/xsimd.hpp>

#include "kernels/math/lanes.hpp"

namespace xtape::vector_math::in_double {

using Batch = xsimd::batch<double>;
using Bits = Register<std::uint64_t, Batch::size>::type;  // the same lanes as integers

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double ln2_high = 0x1.62e42fee00000p-1;  // products with integers up to 2^20 are exact
inline constexpr double ln2_low = 0x1.a39ef35793c76p-33;
inline constexpr double rounder =
    0x1.8p52;  // x + rounder - rounder rounds x to an integer, which is in the low bits of x + rounder

inline Bits bits_of(const Batch& x) {
  return std::bit_cast<Bits>(x);
}
inline Batch from_bits(const Bits& bits) {
  return std::bit_cast<Batch>(bits);
}

/// Up to this |x|, no intermediate value of e^x is subnormal or infinite.
inline constexpr double ordinary = 670;

template <class... Numbers>
[[gnu::always_inline]] inline Batch horner(const Batch& x, double lowest, Numbers... others) {
  if constexpr (sizeof...(others) == 0)
    return Batch(lowest);
  else
    return fused(horner(x, others...), x, Batch(lowest));
}
/// The polynomial with these coefficients, starting with the lowest. Its even and odd parts form two shorter dependency
/// chains.
template <class... Numbers>
[[gnu::always_inline]] inline Batch polynomial(const Batch& x, Numbers... numbers) {
  constexpr std::size_t n = sizeof...(numbers);
  const double c[n] = {numbers...};
  return [&]<std::size_t... even, std::size_t... odd>(std::index_sequence<even...>, std::index_sequence<odd...>) {
    const Batch square = x * x;
    return fused(horner(square, c[2 * odd + 1]...), x, horner(square, c[2 * even]...));
  }
  (std::make_index_sequence<(n + 1) / 2>{}, std::make_index_sequence<n / 2>{});
}

/// x = n ln 2 + rest.
struct Powers {
  Batch rest, n;
  Bits end;  ///< n in the low bits
};
[[gnu::always_inline]] inline Powers powers_of(const Batch& x) {
  const Batch t = fused(x, Batch(M_LOG2E), Batch(rounder)), n = t - Batch(rounder);
  return {fused_away(n, Batch(ln2_low), fused_away(n, Batch(ln2_high), x)), n, bits_of(t)};
}
/// Returns 2^n, where n is in the low bits of `end`. 2^n must be a normal number.
[[gnu::always_inline]] inline Batch power_of_two(const Bits& end) {
  return from_bits((end + 1023) << 52);
}
/// e^r - 1 - r for |r| <= ln 2 / 2.
[[gnu::always_inline]] inline Batch short_tail(const Batch& r) {
  const Batch third = polynomial(r, 0x1.555555555555ap-3, 0x1.5555555553adfp-5, 0x1.111111110f0d3p-7,
                                 0x1.6c16c17a10767p-10, 0x1.a01a01b2bb722p-13, 0x1.a019b35dc911bp-16,
                                 0x1.71ddf0735541fp-19, 0x1.2897aab30c87cp-22, 0x1.af6d34250d420p-26);
  return r * r * fused(third, r, Batch(0.5));
}

/// e^x for |x| < ordinary.
[[gnu::always_inline]] inline Batch core_exp(const Batch& x) {
  const Powers powers = powers_of(x);
  const Batch scale = power_of_two(powers.end);
  return fused(scale, powers.rest + short_tail(powers.rest), scale);
}
[[gnu::noinline]] inline Batch exp_at_ends(const Batch& given) {
  const Batch end(800), x = xsimd::select(given > end, end, xsimd::select(given < -end, -end, given));
  const Powers powers = powers_of(x);
  const Batch t = fused(powers.n, Batch(0.5), Batch(rounder)), half = t - Batch(rounder);
  const Batch scale = power_of_two(bits_of(t)), other = power_of_two(bits_of(powers.n - half + Batch(rounder)));
  return fused(scale, powers.rest + short_tail(powers.rest), scale) * other;
}
inline Batch exp(const Batch& x) {
  if (xsimd::all(xsimd::abs(x) < Batch(ordinary))) [[likely]]
    return core_exp(x);
  return exp_at_ends(x);
}

/// e^x - 1 as high + low for |x| < ordinary. low contains the rounding errors of the reduced argument and of the final
/// sum.
struct HighLow {
  Batch high, low;
};
[[gnu::always_inline]] inline HighLow core_expm1(const Batch& x) {
  const Powers powers = powers_of(x);
  const Batch scale = power_of_two(powers.end), tail = short_tail(powers.rest), sum = powers.rest + tail;
  const Batch whole = fused_away(powers.n, Batch(ln2_high), x);
  const Batch lost = fused_away(powers.n, Batch(ln2_low), whole - powers.rest) + (tail - (sum - powers.rest));
  return {fused(scale, sum, scale - Batch(1.0)), scale * lost};
}
inline Batch expm1(const Batch& x) {
  const auto inside = xsimd::abs(x) < Batch(ordinary);
  const auto [high, low] = core_expm1(xsimd::select(inside, x, Batch(0.0)));
  const Batch y = high + low;
  if (xsimd::all(inside)) [[likely]]
    return y;
  return xsimd::select(inside, y, exp_at_ends(x) - Batch(1.0));
}

/// k and f with x = 2^k (1 + f), where 1 + f is between sqrt(1/2) and sqrt(2).
struct Logarithm {
  Batch k, f;
  Bits exponent;  ///< k + 1023.
};
[[gnu::always_inline]] inline Logarithm split(const Batch& x) {
  constexpr std::uint64_t root = 0x3fe6a09e667f3bcd, one = 0x3ff0000000000000;  // the bits of sqrt(1/2) and 1
  const Bits bits = bits_of(x) + (one - root), exponent = bits >> 52;
  return {from_bits(exponent | 0x4330000000000000) - Batch(0x1p52 + 1023),
          from_bits((bits & 0x000fffffffffffff) + root) - Batch(1.0), exponent};
}
/// k ln 2 + log(1 + f), with s = f / (2 + f) as in FDLIBM.
[[gnu::always_inline]] inline Batch joined_log(const Batch& k, const Batch& f) {
  const Batch s = f / (f + Batch(2.0)), z = s * s, half = Batch(0.5) * f * f;
  const Batch rest =
      z * polynomial(z, 0x1.5555555555592p-1, 0x1.999999997fcc6p-2, 0x1.2492494204f62p-2, 0x1.c71c51f530f7cp-3,
                     0x1.746643be1f8eep-3, 0x1.39a12e4c222fbp-3, 0x1.2f0b783c4adf6p-3);
  const Batch low = fused(s, half + rest, k * Batch(ln2_low));
  return fused(k, Batch(ln2_high), f - (half - low));
}
[[gnu::always_inline]] inline Batch core_log(const Batch& x) {
  const Logarithm parts = split(x);
  return joined_log(parts.k, parts.f);
}
/// log x for any x. For a positive subnormal x, computes log(2^54 x) - 54 ln 2.
[[gnu::noinline]] inline Batch log_at_ends(const Batch& x) {
  const auto subnormal = x < Batch(std::numeric_limits<double>::min());
  const Batch y = core_log(xsimd::select(subnormal, x * Batch(0x1p54), x));
  const Batch finite = xsimd::select(subnormal, y - Batch(54 * M_LN2), y);
  const Batch odd = xsimd::select(x < Batch(0.0), Batch(std::numeric_limits<double>::quiet_NaN()),
                                  xsimd::select(x == Batch(0.0), Batch(-infinity), x));
  return xsimd::select((x > Batch(0.0)) & (x < Batch(infinity)), finite, odd);
}
inline Batch log(const Batch& x) {
  if (xsimd::all((x >= Batch(std::numeric_limits<double>::min())) & (x < Batch(infinity)))) [[likely]]
    return core_log(x);
  return log_at_ends(x);
}

/// log(1 + x) for -1 < x < 2^1000. The rounding error of 1 + x is added to f.
[[gnu::always_inline]] inline Batch core_log1p(const Batch& x) {
  const Batch sum = x + Batch(1.0), lost = x - (sum - Batch(1.0));
  const Logarithm parts = split(sum);
  return joined_log(parts.k, fused(lost, from_bits((2046 - parts.exponent) << 52), parts.f));
}
[[gnu::noinline]] inline Batch log1p_at_ends(const Batch& x) {
  const auto inside = (x > Batch(-1.0)) & (x < Batch(0x1p1000));
  return xsimd::select(inside, core_log1p(xsimd::select(inside, x, Batch(0.0))), log_at_ends(x + Batch(1.0)));
}
inline Batch log1p(const Batch& x) {
  if (xsimd::all((x > Batch(-1.0)) & (x < Batch(0x1p1000)))) [[likely]]
    return core_log1p(x);
  return log1p_at_ends(x);
}

/// tanh |x| = q = -e / (e + 2), where e = expm1(-2 |x|). A first-order term corrects the rounding errors of e and e +
/// 2. The slope is 1 / (e + 2) = (1 + q) / 2.
inline Batch tanh(const Batch& x) {
  const Batch size = xsimd::abs(x), least = xsimd::select(size > Batch(20.0), Batch(20.0), size), two(2.0);
  const auto [e, low] = core_expm1(least * Batch(-2.0));
  const Batch sum = e + two, lost = e - (sum - two) + low;
  const Batch q = -e / sum, slope = fused(q, Batch(0.5), Batch(0.5));
  return xsimd::copysign(fused_away(fused(q, lost, low), slope, q), x);
}

/// Uses a polynomial for |x| < 1. For larger |x|, uses 1 - e^(-x^2) times a polynomial of 1 / (1 + |x|).
inline Batch erf(const Batch& x) {
  const Batch size = xsimd::abs(x), square = x * x;
  const Batch low =
      fused(x,
            polynomial(square, 0x1.06eba8214db69p-3, -0x1.812746b0379c2p-2, 0x1.ce2f21a041017p-4, -0x1.b82ce31206285p-6,
                       0x1.565bccfa9a25ep-8, -0x1.c02db072e8efbp-11, 0x1.f9a2bf7323192p-14, -0x1.f4ca948fc033ap-17,
                       0x1.b9827ad66c41ap-20, -0x1.5c16e20063159p-23, 0x1.d7848f20d7367p-27, -0x1.acdff40c97155p-31),
            x);
  const auto large = size > Batch(1.0);
  if (!xsimd::any(large)) return low;
  const Batch least = xsimd::select(size > Batch(6.0), Batch(6.0), size);
  const Batch share = polynomial(
      Batch(1.0) / (least + Batch(1.0)), -0x1.8076bb11e3c8dp-18, 0x1.20fce64dc78d1p-1, 0x1.1e83a45561e69p-1,
      0x1.5746063735e39p-2, -0x1.642d977449288p-1, 0x1.91462f8ecc000p+0, -0x1.236b641bc99e9p+3, 0x1.abc05b5a8f14ep+4,
      -0x1.6b9722aa04abep+5, 0x1.8a04576a92074p+5, -0x1.11531000c004bp+5, 0x1.c00e7d339b921p+3, -0x1.4cd7ac34def49p+1);
  const Batch high = fused_away(core_exp(-(least * least)), share, Batch(1.0));
  return xsimd::select(large, xsimd::copysign(high, x), low);
}

/// The C library's sin or cos for large x.
template <bool cosine>
[[gnu::noinline]] inline Batch large_wave(const Batch& x) {
  std::array<double, Batch::size> lanes;
  x.store_unaligned(lanes.data());
  for (double& each : lanes) each = cosine ? std::cos(each) : std::sin(each);
  return Batch::load_unaligned(lanes.data());
}
/// Computes sin or cos from the distance r of |x| to the nearest multiple of pi / 2. Beyond 2048, this reduction is not
/// exact enough.
template <bool cosine>
inline Batch wave(const Batch& x) {
  const Batch size = xsimd::abs(x), t = fused(size, Batch(M_2_PI), Batch(rounder)), n = t - Batch(rounder);
  const Batch reduced = fused_away(n, Batch(0x1.0b4611a6p-34), fused_away(n, Batch(0x1.921fb544p+0), size));
  const Batch r = fused_away(n, Batch(0x1.3198a2e037073p-69), reduced), z = r * r;
  const Batch sine = polynomial(z, -0x1.5555555555549p-3, 0x1.111111110f87bp-7, -0x1.a01a019c11abcp-13,
                                0x1.71de3577c440dp-19, -0x1.ae5e6643fbbddp-26, 0x1.5d93037156b44p-33);
  const Batch other = polynomial(z, 0x1.555555555554cp-5, -0x1.6c16c16c15183p-10, 0x1.a01a019cb2333p-16,
                                 -0x1.27e4f80a3c072p-22, 0x1.1ee9ec17815ccp-29, -0x1.8faeb2700c678p-37);
  const Bits of_sine = bits_of(fused(r * z, sine, r));
  const Bits of_cosine = bits_of(fused(z * z, other, fused_away(z, Batch(0.5), Batch(1.0))));
  const Bits quarter = bits_of(t) + (cosine ? 1 : 0), odd = -(quarter & 1);
  Bits bits = ((of_sine & ~odd) | (of_cosine & odd)) ^ ((quarter & 2) << 62);
  if (!cosine) bits ^= bits_of(x) & (std::uint64_t{1} << 63);
  const auto inside = size < Batch(2048.0);
  if (xsimd::all(inside)) [[likely]]
    return from_bits(bits);
  return xsimd::select(inside, from_bits(bits), large_wave<cosine>(x));
}
inline Batch sin(const Batch& x) {
  return wave<false>(x);
}
inline Batch cos(const Batch& x) {
  return wave<true>(x);
}

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
/// x^y for lanes with a positive normal x and |y log x| < ordinary. `inside` marks these lanes. The logarithm is in
/// double-double precision, high + low. Fused multiply-adds compute the rounding errors.
struct Power {
  Batch value;
  xsimd::batch_bool<double> inside;
};
[[gnu::always_inline]] inline Power core_pow(const Batch& x, const Batch& y) {
  const Batch two(2.0);
  const auto [k, f, exponent] = split(x);
  // s = f / (2 + f)
  const Batch below = f + two, below_low = f - (below - two), inverse = Batch(1.0) / below;
  const Batch s = f * inverse, s_low = inverse * fused(-s, below_low, fused(-s, below, f));
  const Batch z = s * s, z_low = fused(s, s, -z) + (s + s) * s_low;
  // log(1 + f) = 2 s + s u with u = z c and c = 2/3 + z rest
  const Batch rest = polynomial(z, 0x1.99999999999e1p-2, 0x1.249249247b64dp-2, 0x1.c71c71fff62f0p-3,
                                0x1.745cf83f9431cp-3, 0x1.3b1c83e4d96a0p-3, 0x1.0fb46e6db7f7cp-3, 0x1.0c7795f991d95p-3);
  const Batch third(0x1.5555555555555p-1), third_low(0x1.5555555555555p-55);
  const Batch c = fused(z, rest, third), c_low = fused(z, rest, third - c) + third_low;
  const Batch u = z * c, u_low = fused(z, c, -u) + fused(z, c_low, z_low * c);
  const Batch first = k * Batch(ln2_high), second = fused(two, s, first), sum = fused(s, u, second);
  const Batch lost = fused(s, u, second - sum) + fused(two, s, first - second);
  const Batch lows = lost + fused(k, Batch(ln2_low), fused(s, u_low, s_low * (u + two)));
  const Batch high = sum + lows, low = lows - (high - sum);
  const Batch product = y * high, product_low = fused(y, low, fused(y, high, -product));
  const auto inside = (x >= Batch(std::numeric_limits<double>::min())) & (x < Batch(infinity)) &
                      (xsimd::abs(product) < Batch(ordinary));
  const Powers powers = powers_of(xsimd::select(inside, product, Batch(0.0)));
  const Batch scale = power_of_two(powers.end);
  const Batch short_rest = powers.rest + product_low;
  return {fused(scale, short_rest + short_tail(short_rest), scale), inside};
}
/// Like core_pow, for operands and results rounded to float32. A plain float64 logarithm is precise enough.
[[gnu::always_inline]] inline Power short_pow(const Batch& x, const Batch& y) {
  const Batch product = y * core_log(x);
  const auto inside = (x > Batch(0.0)) & (x < Batch(infinity)) & (xsimd::abs(product) < Batch(ordinary));
  return {core_exp(xsimd::select(inside, product, Batch(0.0))), inside};
}
/// Returns x^y for a negative x, given `power`, which is (-x)^y.
[[gnu::always_inline]] inline Batch of_negative(const Batch& power, const Batch& y) {
  const Batch half = y * Batch(0.5);
  return xsimd::select(xsimd::floor(y) != y, Batch(std::numeric_limits<double>::quiet_NaN()),
                       xsimd::select(xsimd::floor(half) != half, -power, power));
}
/// Replaces the power by the result of the C library where `inside` is 0.
[[gnu::noinline]] inline Batch pow_at_ends(const Batch& x, const Batch& y, const Batch& power, const Batch& inside) {
  std::array<double, Batch::size> xs, ys, powers, right;
  x.store_unaligned(xs.data());
  y.store_unaligned(ys.data());
  power.store_unaligned(powers.data());
  inside.store_unaligned(right.data());
  for (std::size_t i = 0; i < xs.size(); ++i)
    if (right[i] == 0) powers[i] = std::pow(xs[i], ys[i]);
  return Batch::load_unaligned(powers.data());
}
template <bool narrow>
inline Batch pow(const Batch& x, const Batch& y) {
  auto [power, inside] = narrow ? short_pow(xsimd::abs(x), y) : core_pow(xsimd::abs(x), y);
  const auto negative = x < Batch(0.0);
  if (xsimd::any(negative)) power = xsimd::select(negative, of_negative(power, y), power);
  if (xsimd::all(inside)) [[likely]]
    return power;
  return pow_at_ends(x, y, power, xsimd::select(inside, Batch(1.0), Batch(0.0)));
}
#endif

}  // namespace xtape::vector_math::in_double
