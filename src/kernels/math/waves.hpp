/// The sine, cosine and tangent, by the distance of the angle to the nearest multiple of pi / 2.
#pragma once

#include <array>
#include <cmath>
#include <xsimd/xsimd.hpp>

#include "kernels/math/elementary.hpp"
#include "kernels/math/large_angles.hpp"

namespace xtape::vector_math {

/// A size is the rest plus a number of quarter turns, which is in the low bits of `quarters`.
template <class T>
struct Turned {
  xsimd::batch<T> rest;
  Bits<T> quarters;
};
/// From this size on, turned_of is not exact enough. For float32, its first two differences are exact if n is small,
/// and if multiply-adds are fused.
template <class T>
inline constexpr T far = narrow<T> ? (has_fma ? 0x1p16 : 0.75) : 2048;
template <class T>
[[gnu::always_inline]] inline Turned<T> turned_of(const xsimd::batch<T>& size) {
  using Batch = xsimd::batch<T>;
  const auto part = [](double wide, double short_one) { return Batch(T(narrow<T> ? short_one : wide)); };
  const Batch rounder(Floats<T>::rounder), t = fused(size, Batch(T(M_2_PI)), rounder), n = t - rounder;
  const Batch first = fused_away(n, part(0x1.921fb544p+0, 0x1.921fb6p+0), size);
  const Batch second = fused_away(n, part(0x1.0b4611a6p-34, -0x1.777a5cp-25), first);
  return {fused_away(n, part(0x1.3198a2e037073p-69, -0x1.ee59dap-50), second), bits_of(t)};
}
/// sin r and cos r for |r| <= pi / 4.
template <class T>
struct Waves {
  Bits<T> sine, cosine;
};
template <class T>
[[gnu::always_inline]] inline Waves<T> waves_of(const xsimd::batch<T>& r) {
  using Batch = xsimd::batch<T>;
  const Batch z = r * r;
  Batch sine, other;
  if constexpr (narrow<T>) {
    sine = horner(z, -0x1.555544p-3f, 0x1.1106c6p-7f, -0x1.991c1ap-13f);
    other = horner(z, 0x1.55554ap-5f, -0x1.6c0c2p-10f, 0x1.99e428p-16f);
  } else {
    sine = polynomial(z, -0x1.5555555555549p-3, 0x1.111111110f87bp-7, -0x1.a01a019c11abcp-13, 0x1.71de3577c440dp-19,
                      -0x1.ae5e6643fbbddp-26, 0x1.5d93037156b44p-33);
    other = polynomial(z, 0x1.555555555554cp-5, -0x1.6c16c16c15183p-10, 0x1.a01a019cb2333p-16, -0x1.27e4f80a3c072p-22,
                       0x1.1ee9ec17815ccp-29, -0x1.8faeb2700c678p-37);
  }
  return {bits_of(fused(r * z, sine, r)), bits_of(fused(fused(other, z, Batch(T(-0.5))), z, Batch(T(1))))};
}
/// sin x or cos x, for the distance of |x| to the nearest multiple of pi / 2.
template <bool cosine, class T>
[[gnu::always_inline]] inline xsimd::batch<T> wave_of(const Turned<T>& turned, const xsimd::batch<T>& x) {
  const Waves<T> waves = waves_of(turned.rest);
  const Bits<T> quarter = turned.quarters + (cosine ? 1 : 0), odd = -(quarter & 1);
  const Bits<T> bits = ((waves.sine & ~odd) | (waves.cosine & odd)) ^ ((quarter & 2) << (8 * sizeof(T) - 2));
  return from_bits<T>(cosine ? bits : bits ^ (bits_of(x) & Floats<T>::sign));
}
/// Reduces the lanes that are far away by integers.
template <class T>
[[gnu::noinline]] inline Turned<T> turned_at_ends(xsimd::batch<T> size) {
  std::array<T, xsimd::batch<T>::size> sizes, rests;
  auto [rest, quarters] = turned_of(size);
  size.store_unaligned(sizes.data());
  rest.store_unaligned(rests.data());
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (!(sizes[i] < far<T>)) {
      const Angle angle = angle_of(sizes[i]);
      rests[i] = static_cast<T>(angle.rest);
      quarters[i] = static_cast<typename Floats<T>::Word>(angle.quarter);
    }
  return {xsimd::batch<T>::load_unaligned(rests.data()), quarters};
}
template <bool cosine, class T>
[[gnu::noinline]] inline xsimd::batch<T> wave_at_ends(xsimd::batch<T> x) {
  return wave_of<cosine>(turned_at_ends(xsimd::abs(x)), x);
}
template <bool cosine, class T>
[[gnu::always_inline]] inline xsimd::batch<T> wave(const xsimd::batch<T>& x) {
  const xsimd::batch<T> size = xsimd::abs(x), y = wave_of<cosine>(turned_of(size), x);
  if (xsimd::all(size < xsimd::batch<T>(far<T>))) [[likely]]
    return y;
  return wave_at_ends<cosine>(x);
}
template <class T>
[[gnu::always_inline]] inline xsimd::batch<T> sin(const xsimd::batch<T>& x) {
  return wave<false>(x);
}
template <class T>
[[gnu::always_inline]] inline xsimd::batch<T> cos(const xsimd::batch<T>& x) {
  return wave<true>(x);
}
/// tan x for float64, within 3.3 units in the last place.
inline xsimd::batch<double> tan(const xsimd::batch<double>& x) {
  const xsimd::batch<double> size = xsimd::abs(x);
  const bool near = xsimd::all(size < xsimd::batch<double>(far<double>));
  const Turned<double> turned = near ? turned_of(size) : turned_at_ends(size);
  const auto [sine, cosine] = waves_of(turned.rest);
  const Bits<double> odd = -(turned.quarters & 1);
  const auto above = from_bits<double>((sine & ~odd) | (cosine & odd));
  const auto below = from_bits<double>((cosine & ~odd) | (sine & odd));
  return from_bits<double>(bits_of(above / below) ^ ((odd ^ bits_of(x)) & Floats<double>::sign));
}

}  // namespace xtape::vector_math
