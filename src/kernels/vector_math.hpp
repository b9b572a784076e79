/// Vectorised loops over dense arrays, and transcendental functions for them.
///
/// Every element is computed by the same instructions, also in the tail of a loop. The result therefore does not depend
/// on how an array is cut into pieces.
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

#include "gelu.hpp"

namespace xtape::vector_math {

/// The square root, correctly rounded. xsimd estimates that of float32 on NEON.
template <class T>
xsimd::batch<T> square_root(const xsimd::batch<T>& x) {
#ifdef __aarch64__
  if constexpr (std::is_same_v<T, float>) return vsqrtq_f32(x);
#endif
  return xsimd::sqrt(x);
}

/// out = f(in...), one register at a time. `out` may be one of `in`.
template <class T, std::size_t n, class F>
void map_vectors(const std::array<const T*, n>& in, T* out, std::int64_t count, const F& f) {
  using Batch = xsimd::batch<T>;
  constexpr std::int64_t width = Batch::size;
  const auto over_registers = [&f] [[gnu::noinline]] (const std::array<const T*, n>& from, T* to, std::int64_t size) {
    [&]<std::size_t... each>(std::index_sequence<each...>) {
      for (std::int64_t i = 0; i < size; i += width)
        Batch(f(Batch::load_unaligned(from[each] + i)...)).store_unaligned(to + i);
    }
    (std::make_index_sequence<n>{});
  };
  const std::int64_t whole = count / width * width, rest = count - whole;
  over_registers(in, out, whole);
  if (rest == 0) return;
  // The tail is also computed in full registers, padded with ones, for which no function traps or is slow.
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

/// f(x). For float64, lanes with |x| >= limit or NaN use the scalar f: xsimd's batch version converts them to integers,
/// which is undefined for such large numbers.
template <class T, class F>
xsimd::batch<T> within(const xsimd::batch<T>& x, T limit, const F& f) {
  using Batch = xsimd::batch<T>;
  const auto inside = xsimd::abs(x) < Batch(limit);
  if (sizeof(T) == 4 || xsimd::all(inside)) return f(x);
  std::array<T, Batch::size> lanes, computed;
  x.store_unaligned(lanes.data());
  f(xsimd::select(inside, x, Batch(T{0}))).store_unaligned(computed.data());
  for (std::size_t i = 0; i < lanes.size(); ++i)
    if (!(std::abs(lanes[i]) < limit)) computed[i] = f(lanes[i]);
  return Batch::load_unaligned(computed.data());
}

/// e^x, except that a subnormal result may be 0 and a result near the largest number may be infinity.
template <class T>
xsimd::batch<T> clipped_exp(const xsimd::batch<T>& x) {
  return within(x, T{746}, [](const auto& part) { return xsimd::exp(part); });
}

template <class T>
xsimd::batch<T> sin(const xsimd::batch<T>& x) {
  return within(x, std::numeric_limits<T>::infinity(), [](const auto& part) { return xsimd::sin(part); });
}

template <class T>
xsimd::batch<T> cos(const xsimd::batch<T>& x) {
  return within(x, std::numeric_limits<T>::infinity(), [](const auto& part) { return xsimd::cos(part); });
}

template <class T>
xsimd::batch<T> tanh(const xsimd::batch<T>& x) {
  return within(x, T{373}, [](const auto& part) { return xsimd::tanh(part); });
}

/// e^x. Corrects xsimd's version, which gives infinity or 0 too early, for results near the largest number and for
/// subnormal ones.
template <class T>
xsimd::batch<T> exp(const xsimd::batch<T>& x) {
  using Batch = xsimd::batch<T>;
  constexpr T near = sizeof(T) == 4 ? 87 : 708, beyond = sizeof(T) == 4 ? 104 : 746;  // from `beyond` on, 0 or infinity
  const Batch y = clipped_exp(x);
  const Batch size = xsimd::abs(x);
  const auto at_an_end = (size > Batch(near)) & (size < Batch(beyond));
  if (!xsimd::any(at_an_end)) return y;
  const Batch root = clipped_exp(x * Batch(T(0.5)));
  return xsimd::select(at_an_end, root * root, y);
}

/// e^x - 1. For large x, xsimd's version gives infinity too early, as its exponential does.
template <class T>
xsimd::batch<T> expm1(const xsimd::batch<T>& x) {
  using Batch = xsimd::batch<T>;
  const Batch y = within(x, T{746}, [](const auto& part) { return xsimd::expm1(part); });
  const auto large = x > Batch(T{80});  // where 1 is less than half a unit in the last place
  return xsimd::any(large) ? xsimd::select(large, vector_math::exp(x), y) : y;
}

/// The natural logarithm. xsimd's float64 version is wrong for subnormal numbers.
template <class T>
xsimd::batch<T> log(const xsimd::batch<T>& x) {
  using Batch = xsimd::batch<T>;
  if constexpr (sizeof(T) == 8) {
    const auto subnormal = (x < Batch(std::numeric_limits<T>::min())) & (x > Batch(T{0}));
    if (xsimd::any(subnormal)) {
      constexpr T scale = 0x1p54, log_of_scale = 54 * M_LN2;
      const Batch y = xsimd::log(xsimd::select(subnormal, x * Batch(scale), x));
      return xsimd::select(subnormal, y - Batch(log_of_scale), y);
    }
  }
  return xsimd::log(x);
}

/// The error function. xsimd's float64 version is wrong by up to 70 units in the last place; the C library's is not.
template <class T>
xsimd::batch<T> erf(const xsimd::batch<T>& x) {
  if constexpr (sizeof(T) == 4) {
    return xsimd::erf(x);
  } else {
    std::array<T, xsimd::batch<T>::size> lanes;
    x.store_unaligned(lanes.data());
    for (T& lane : lanes) lane = std::erf(lane);
    return xsimd::batch<T>::load_unaligned(lanes.data());
  }
}

/// 1 / (1 + e^-x), computed from the exponential of -|x|, which does not overflow.
template <class T>
xsimd::batch<T> sigmoid(const xsimd::batch<T>& x) {
  using Batch = xsimd::batch<T>;
  const Batch one(T{1});
  const Batch e = vector_math::exp(-xsimd::abs(x));
  return xsimd::select(x < Batch(T{0}), e, one) / (one + e);
}

/// log(1 + e^x), without overflow.
template <class T>
xsimd::batch<T> softplus(const xsimd::batch<T>& x) {
  using Batch = xsimd::batch<T>;
  const Batch tail = xsimd::log1p(vector_math::exp(-xsimd::abs(x)));
  return xsimd::select(x > Batch(T{0}), x + tail, tail);
}

/// x times the normal distribution function of x.
template <class T>
xsimd::batch<T> gelu_erf(const xsimd::batch<T>& x) {
  using Batch = xsimd::batch<T>;
  const Batch half_x = x * Batch(T(0.5));
  return xsimd::fma(half_x, vector_math::erf(x * Batch(T(M_SQRT1_2))), half_x);
}

/// The derivative of gelu_erf.
template <class T>
xsimd::batch<T> gelu_erf_slope(const xsimd::batch<T>& x) {
  using Batch = xsimd::batch<T>;
  const Batch half(T(0.5));
  const Batch below = xsimd::fma(half, vector_math::erf(x * Batch(T(M_SQRT1_2))), half);
  const Batch density = clipped_exp(x * x * Batch(T(-0.5))) * Batch(T(M_SQRT1_2 * 0.5 * M_2_SQRTPI));
  return xsimd::fma(x, density, below);
}

/// GPT-2's approximation of gelu: x/2 * (1 + tanh(u)) with u = gelu_scale * (x + gelu_cubic x^3). (1 + tanh u)/2 is
/// computed as sigmoid(2u), with one exponential.
template <class T>
xsimd::batch<T> gelu_tanh(const xsimd::batch<T>& x) {
  using Batch = xsimd::batch<T>;
  const Batch twice_u = x * xsimd::fma(x * x, Batch(T(2 * gelu_scale * gelu_cubic)), Batch(T(2 * gelu_scale)));
  return x * vector_math::sigmoid(twice_u);
}

/// The derivative of gelu_tanh.
template <class T>
xsimd::batch<T> gelu_tanh_slope(const xsimd::batch<T>& x) {
  using Batch = xsimd::batch<T>;
  const Batch x2 = x * x;
  const Batch twice_u = x * xsimd::fma(x2, Batch(T(2 * gelu_scale * gelu_cubic)), Batch(T(2 * gelu_scale)));
  const Batch s = vector_math::sigmoid(twice_u);
  const Batch slope = xsimd::fma(x2, Batch(T(6 * gelu_scale * gelu_cubic)), Batch(T(2 * gelu_scale)));
  return s * xsimd::fma(x * slope, Batch(T{1}) - s, Batch(T{1}));
}

}  // namespace xtape::vector_math
