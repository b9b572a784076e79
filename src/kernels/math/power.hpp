/// x^y for registers of float64, by the logarithm of |x| in double-double precision. Fused multiply-adds compute the
/// rounding errors. Errors are below 1.5 units in the last place.
#pragma once

#include <array>
#include <cmath>
#include <limits>
#include <xsimd/xsimd.hpp>

#include "kernels/math/elementary.hpp"

namespace xtape::vector_math {

/// x * y + z, rounded once on any processor, for rounding errors.
[[gnu::always_inline]] inline xsimd::batch<double> exact(const xsimd::batch<double>& x, const xsimd::batch<double>& y,
                                                         const xsimd::batch<double>& z) {
  if constexpr (has_fma) return fused(x, y, z);
  std::array<double, xsimd::batch<double>::size> each;
  for (std::size_t i = 0; i < each.size(); ++i) each[i] = std::fma(x.get(i), y.get(i), z.get(i));
  return xsimd::batch<double>::load_unaligned(each.data());
}

/// k ln 2 + log(1 + f) as a sum.
[[gnu::always_inline]] inline HighLow<double> precise_log(const xsimd::batch<double>& k,
                                                          const xsimd::batch<double>& f) {
  using Batch = xsimd::batch<double>;
  using F = Floats<double>;
  const Batch two(2.0);
  // s = f / (2 + f)
  const Batch below = f + two, below_low = f - (below - two), inverse = Batch(1.0) / below;
  const Batch s = f * inverse, s_low = inverse * exact(-s, below_low, exact(-s, below, f));
  const Batch z = s * s, z_low = exact(s, s, -z) + (s + s) * s_low;
  // log(1 + f) = 2 s + s u with u = z c and c = 2/3 + z rest
  const Batch rest = polynomial(z, 0x1.99999999999e1p-2, 0x1.249249247b64dp-2, 0x1.c71c71fff62f0p-3,
                                0x1.745cf83f9431cp-3, 0x1.3b1c83e4d96a0p-3, 0x1.0fb46e6db7f7cp-3, 0x1.0c7795f991d95p-3);
  const Batch third(0x1.5555555555555p-1), third_low(0x1.5555555555555p-55);
  const Batch c = exact(z, rest, third), c_low = exact(z, rest, third - c) + third_low;
  const Batch u = z * c, u_low = exact(z, c, -u) + fused(z, c_low, z_low * c);
  const Batch first = k * Batch(F::ln2_high), second = exact(two, s, first), sum = exact(s, u, second);
  const Batch lost = exact(s, u, second - sum) + exact(two, s, first - second);
  const Batch lows = lost + fused(k, Batch(F::ln2_low), fused(s, u_low, s_low * (u + two)));
  const Batch high = sum + lows;
  return {high, lows - (high - sum)};
}

/// scale e^(x + low), where x = n ln 2 + rest, with |rest| <= ln 2 / 2. Keeps the rounding errors of the sums, so that
/// almost all results are the nearest number.
[[gnu::always_inline]] inline xsimd::batch<double> exp_of_sum(const xsimd::batch<double>& x,
                                                              const xsimd::batch<double>& low,
                                                              const Powers<double>& powers,
                                                              const xsimd::batch<double>& scale) {
  using Batch = xsimd::batch<double>;
  using F = Floats<double>;
  const Batch near = fused_away(powers.n, Batch(F::ln2_high), x);
  const Batch lows = low + exact(-powers.n, Batch(F::ln2_low), near - powers.rest);
  const Batch r = powers.rest + lows, one(1.0);
  const Batch more = fused(r * r, short_rest(r), lows - (r - powers.rest)), part = r + more, sum = one + part;
  return (sum + ((part - (sum - one)) + (more - (part - r)))) * scale;
}

/// The powers of positive numbers, and the lanes with a normal x and |y log x| < ordinary, in which they are right.
struct Power {
  xsimd::batch<double> value;
  xsimd::batch_bool<double> inside;
};
template <bool nearest>
[[gnu::always_inline]] inline Power core_power(const xsimd::batch<double>& x, const xsimd::batch<double>& y) {
  using Batch = xsimd::batch<double>;
  const Logarithm<double> parts = split(x);
  const auto [high, low] = precise_log(parts.k, parts.f);
  const Batch product = y * high, product_low = fused(y, low, exact(y, high, -product));
  const auto inside = (x >= Batch(std::numeric_limits<double>::min())) & (x < Batch(infinity<double>)) &
                      (xsimd::abs(product) < Batch(Floats<double>::ordinary));
  const Batch ordinary = xsimd::select(inside, product, Batch(0.0));
  const Powers<double> powers = powers_of(ordinary);
  const Batch scale = power_of_two<double>(powers.end);
  return {nearest ? exp_of_sum(ordinary, product_low, powers, scale) : scaled_exp(powers.rest + product_low, scale),
          inside};
}
/// Like core_power, for operands and results rounded to float32. A plain float64 logarithm is precise enough.
[[gnu::always_inline]] inline Power short_power(const xsimd::batch<double>& x, const xsimd::batch<double>& y) {
  using Batch = xsimd::batch<double>;
  const Batch product = y * core_log(x);
  const auto inside =
      (x > Batch(0.0)) & (x < Batch(infinity<double>)) & (xsimd::abs(product) < Batch(Floats<double>::ordinary));
  return {core_exp(xsimd::select(inside, product, Batch(0.0))), inside};
}
/// x^y for any x that is not negative, and any y.
[[gnu::noinline]] inline xsimd::batch<double> power_at_ends(const xsimd::batch<double>& x,
                                                            const xsimd::batch<double>& y) {
  using Batch = xsimd::batch<double>;
  constexpr double beyond = Floats<double>::beyond;
  const Batch zero(0.0), one(1.0), end(infinity<double>), rounder(biased_rounder<double>);
  const auto subnormal = x < Batch(std::numeric_limits<double>::min());
  const Logarithm<double> parts = split(xsimd::select(subnormal, x * Batch(0x1p54), x));
  const auto [log_high, log_low] = precise_log(xsimd::select(subnormal, parts.k - Batch(54.0), parts.k), parts.f);
  const Batch high = xsimd::select(x == zero, -end, xsimd::select(x < end, log_high, x));
  const Batch product = y * high, exact_low = fused(y, log_low, exact(y, high, -product));
  const Batch low = xsimd::select(xsimd::abs(product) < Batch(beyond), exact_low, zero);
  const Powers<double> powers = powers_of(at_least(at_most(product, beyond), -beyond));
  const Batch t = fused(powers.n, Batch(0.5), rounder), half = t - rounder;
  const Batch scale = power_of_two<double>(bits_of(t));
  const Batch other = power_of_two<double>(bits_of(powers.n - half + rounder));
  const Batch value = scaled_exp(powers.rest + low, scale) * other;
  // also where the other operand is infinite or NaN
  return xsimd::select((y == zero) | (x == one), one, value);
}
/// Returns x^y for a negative x or -0, given `power`, which is |x|^y.
[[gnu::always_inline]] inline xsimd::batch<double> of_negative(const xsimd::batch<double>& x,
                                                               const xsimd::batch<double>& y,
                                                               const xsimd::batch<double>& power) {
  using Batch = xsimd::batch<double>;
  const Batch half = y * Batch(0.5), negated = with_sign(power, Batch(-1.0));
  const auto at_end = (x == Batch(0.0)) | (x == Batch(-infinity<double>));
  const Batch of_fraction = xsimd::select(at_end, power, Batch(std::numeric_limits<double>::quiet_NaN()));
  return xsimd::select(xsimd::floor(y) == y, xsimd::select(xsimd::floor(half) == half, power, negated), of_fraction);
}
/// How good powers are. With `few` digits, operands and results are rounded to float32. With `all`, almost every result
/// is the nearest number, so that powers which are short numbers are exact.
enum class Digits { few, most, all };
/// x^y.
template <Digits digits>
inline xsimd::batch<double> power(const xsimd::batch<double>& x, const xsimd::batch<double>& y) {
  using Batch = xsimd::batch<double>;
  const Batch size = xsimd::abs(x), one(1.0);
  auto [power, inside] = digits == Digits::few ? short_power(size, y) : core_power<digits == Digits::all>(size, y);
  if (!xsimd::all(inside)) [[unlikely]]
    power = xsimd::select(inside, power, power_at_ends(size, y));
  const auto negative = xsimd::copysign(one, x) < Batch(0.0);
  if (!xsimd::any(negative)) return power;
  return xsimd::select(negative & (x == x), of_negative(x, y, power), power);
}

}  // namespace xtape::vector_math
