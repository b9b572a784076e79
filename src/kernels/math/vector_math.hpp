/// Vectorised loops over dense arrays, and transcendental functions for them.
///
/// The same instructions compute every element, also in the tail of a loop. The result therefore does not depend on how
/// an array is split.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <xsimd/xsimd.hpp>

#include "kernels/math/elementary.hpp"
#include "kernels/math/gelu.hpp"
#include "kernels/math/power.hpp"
#include "kernels/math/waves.hpp"

namespace xtape::vector_math {

/// The square root, correctly rounded. On NEON, xsimd only estimates the float32 square root.
template <class T>
xsimd::batch<T> square_root(const xsimd::batch<T>& x) {
#ifdef __aarch64__
  if constexpr (std::is_same_v<T, float>) return vsqrtq_f32(x);
#endif
  return xsimd::sqrt(x);
}

/// out = f(in...), one register at a time. `out` may be one of `in`. All of f but its functions for the ends is part of
/// the loop.
template <class T, std::size_t n, class F>
void map_vectors(const std::array<const T*, n>& in, T* out, std::int64_t count, const F& f) {
  using Batch = xsimd::batch<T>;
  constexpr std::int64_t width = Batch::size;
  const auto over_registers = [&f](const std::array<const T*, n>& from, T* to, std::int64_t size)
      __attribute__((noinline, flatten)) {
    [&]<std::size_t... each>(std::index_sequence<each...>) {
      for (std::int64_t i = 0; i < size; i += width)
        Batch(f(Batch::load_unaligned(from[each] + i)...)).store_unaligned(to + i);
    }
    (std::make_index_sequence<n>{});
  };
  const std::int64_t whole = count / width * width, rest = count - whole;
  over_registers(in, out, whole);
  if (rest == 0) return;
  // The tail is also computed in full registers. They are padded with ones, because no function traps or is slow for 1.
  std::array<std::array<T, Batch::size>, n> padded;
  std::array<const T*, n> from;
  for (std::size_t k = 0; k < n; ++k) {
    padded[k].fill(T{1});
    std::copy_n(in[k] + whole, rest, padded[k].data());
    from[k] = padded[k].data();
  }
  std::array<T, Batch::size> result;
  over_registers(from, result.data(), width);
  std::copy_n(result.data(), rest, out + whole);
}

/// Functions of one number, with the same bits as those of a register.
inline double exp(double x) {
  return exp(xsimd::batch<double>(x)).get(0);
}
inline double log(double x) {
  return log(xsimd::batch<double>(x)).get(0);
}

/// x^y. float32 is computed in double.
template <class T>
xsimd::batch<T> pow(const xsimd::batch<T>& x, const xsimd::batch<T>& y) {
  using Wide = xsimd::batch<double>;
  if constexpr (narrow<T>) {
    std::array<T, xsimd::batch<T>::size> xs, ys;
    x.store_unaligned(xs.data());
    y.store_unaligned(ys.data());
    std::array<double, xs.size()> wide_x, wide_y;
    std::copy(xs.begin(), xs.end(), wide_x.begin());
    std::copy(ys.begin(), ys.end(), wide_y.begin());
    for (std::size_t i = 0; i < xs.size(); i += Wide::size)
      power<Digits::few>(Wide::load_unaligned(&wide_x[i]), Wide::load_unaligned(&wide_y[i]))
          .store_unaligned(&wide_x[i]);
    for (std::size_t i = 0; i < xs.size(); ++i) xs[i] = static_cast<T>(wide_x[i]);
    return xsimd::batch<T>::load_unaligned(xs.data());
  } else {
    return power<Digits::most>(x, y);
  }
}

/// 1 / (1 + e^-x), computed from the exponential of -|x|, which does not overflow.
template <class T>
[[gnu::always_inline]] inline xsimd::batch<T> sigmoid(const xsimd::batch<T>& x) {
  using Batch = xsimd::batch<T>;
  const Batch one(T{1});
  const Batch e = vector_math::exp(-xsimd::abs(x));
  return quotient(xsimd::select(x < Batch(T{0}), e, one), one + e);
}

/// log(1 + e^x), without overflow.
template <class T>
[[gnu::always_inline]] inline xsimd::batch<T> softplus(const xsimd::batch<T>& x) {
  using Batch = xsimd::batch<T>;
  const Batch e = vector_math::exp(-xsimd::abs(x));
  const Batch tail = core_log1p(e);
  return xsimd::select(x > Batch(T{0}), x + tail, tail);
}

/// x times the normal distribution function of x.
template <class T>
[[gnu::always_inline]] inline xsimd::batch<T> gelu_erf(const xsimd::batch<T>& x) {
  using Batch = xsimd::batch<T>;
  const Batch half_x = x * Batch(T(0.5));
  return fused(half_x, vector_math::erf(x * Batch(T(M_SQRT1_2))), half_x);
}

/// The derivative of gelu_erf.
template <class T>
[[gnu::always_inline]] inline xsimd::batch<T> gelu_erf_slope(const xsimd::batch<T>& x) {
  using Batch = xsimd::batch<T>;
  const Batch half(T(0.5));
  const Batch below = fused(half, vector_math::erf(x * Batch(T(M_SQRT1_2))), half);
  const Batch density = clipped_exp(x * x * Batch(T(-0.5))) * Batch(T(M_SQRT1_2 * 0.5 * M_2_SQRTPI));
  return fused(x, density, below);
}

/// GPT-2's approximation of gelu: x/2 * (1 + tanh(u)) with u = gelu_scale * (x + gelu_cubic x^3). (1 + tanh u)/2 is
/// computed as sigmoid(2u), with one exponential.
template <class T>
[[gnu::always_inline]] inline xsimd::batch<T> gelu_tanh(const xsimd::batch<T>& x) {
  using Batch = xsimd::batch<T>;
  const Batch twice_u = x * fused(x * x, Batch(T(2 * gelu_scale * gelu_cubic)), Batch(T(2 * gelu_scale)));
  return x * vector_math::sigmoid(twice_u);
}

/// The derivative of gelu_tanh.
template <class T>
[[gnu::always_inline]] inline xsimd::batch<T> gelu_tanh_slope(const xsimd::batch<T>& x) {
  using Batch = xsimd::batch<T>;
  const Batch x2 = x * x;
  const Batch twice_u = x * fused(x2, Batch(T(2 * gelu_scale * gelu_cubic)), Batch(T(2 * gelu_scale)));
  const Batch s = vector_math::sigmoid(twice_u);
  const Batch slope = fused(x2, Batch(T(6 * gelu_scale * gelu_cubic)), Batch(T(2 * gelu_scale)));
  return s * fused(x * slope, Batch(T{1}) - s, Batch(T{1}));
}

}  // namespace xtape::vector_math
