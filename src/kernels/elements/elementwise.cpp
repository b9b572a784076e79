#include "kernels/elements/elementwise.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <string_view>
#include <type_traits>
#include <utility>

#include "kernels/elements/division.hpp"
#include "kernels/elements/element_loops.hpp"
#include "kernels/elements/scalar.hpp"
#include "kernels/math/functions.hpp"
#include "kernels/math/lanes.hpp"
#include "kernels/math/vector_math.hpp"
#include "kernels/random/draws.hpp"

namespace xtape {

namespace {
/// A tile function of `f` with one operand.
template <class F>
TileFunction unary(const KernelForm& form, const F& f) {
  return with_number(form.dtype(0), [&](auto scalar) { return loop<decltype(scalar), decltype(scalar)>(f); });
}
/// A tile function of `f` with two operands.
template <class F>
TileFunction binary(const KernelForm& form, const F& f) {
  return with_number(form.dtype(0),
                     [&](auto scalar) { return loop<decltype(scalar), decltype(scalar), decltype(scalar)>(f); });
}
/// Whether two elements, bool included, satisfy `f`.
template <class F>
TileFunction comparison(const KernelForm& form, const F& f) {
  return with_scalar(form.dtype(0), [&](auto scalar) { return loop<bool, decltype(scalar), decltype(scalar)>(f); });
}

/// A tile function of F, a function of n registers of floats.
template <std::size_t n, class F>
TileFunction function(const KernelForm& form, const F& /*f*/) {
  return with_floating(form.dtype(0), [](auto scalar) -> TileFunction {
    using T = decltype(scalar);
    return +[](const Tile& tile) {
      std::array<const T*, n> from;
      for (std::size_t k = 0; k < n; ++k) from[k] = static_cast<const T*>(tile.in[k]);
      vector_math::map_vectors(from, static_cast<T*>(tile.out[0]), tile.count, F{});
    };
  });
}

TileFunction square_roots(const KernelForm& form) {
  if (form.dtype(0) != Dtype::float64)
    return function<1>(form, [](const auto& x) { return vector_math::square_root(x); });
  return +[](const Tile& tile) {
    const auto* from = static_cast<const double*>(tile.in[0]);
    auto* to = static_cast<double*>(tile.out[0]);
    if (tile.count > few_elements)
      return vector_math::map_vectors(std::array{from}, to, tile.count,
                                      [](const auto& x) { return vector_math::square_root(x); });
    for (std::int64_t i = 0; i < tile.count; ++i) to[i] = std::sqrt(from[i]);  // std::sqrt is also correctly rounded
  };
}

/// F, evaluated in Wrapping<T>, so that integer overflow wraps.
template <class F>
auto wrapping(const F& /*f*/) {
  return [](auto... x) {
    using T = std::common_type_t<decltype(x)...>;
    return static_cast<T>(F{}(static_cast<Wrapping<T>>(x)...));
  };
}

/// Powers of floats and integers. Products of integers wrap.
TileFunction power(const KernelForm& form) {
  if (is_floating(form.dtype(0)))
    return function<2>(form, [](const auto& x, const auto& y) { return vector_math::pow(x, y); });
  return with_index(form.dtype(0), [](auto scalar) {
    using T = decltype(scalar);
    return loop<T, T, T>([](T a, T b) {
      if (b < 0) return a == 1 ? T{1} : a == T{-1} ? (b % 2 ? T{-1} : T{1}) : T{0};
      std::uint64_t result = 1, base = static_cast<std::uint64_t>(a);
      for (auto e = static_cast<std::uint64_t>(b); e != 0; e >>= 1, base *= base)
        if (e & 1) result *= base;
      return static_cast<T>(result);
    });
  });
}

struct Magnitude {
  template <class T>
  T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>)
      return std::abs(x);
    else
      return x < 0 ? static_cast<T>(Wrapping<T>{0} - static_cast<Wrapping<T>>(x)) : x;
  }
};

struct Floor {
  template <class T>
  T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>)
      return std::floor(x);
    else
      return x;
  }
};

/// Converts an element. Conversion from float to integer rounds towards 0, clamps values out of range, and turns NaN
/// into 0. A number becomes true if it is nonzero.
template <class To, class From>
To converted(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From{0};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    constexpr From limit = static_cast<From>(std::uint64_t{1} << (8 * sizeof(To) - 1));  // exact: a power of two
    if (x >= limit) return std::numeric_limits<To>::max();
    if (x < -limit) return std::numeric_limits<To>::min();
    return x == x ? static_cast<To>(x) : To{0};
  } else {
    return static_cast<To>(x);
  }
}

/// Widens bfloat16 or float16 to float32.
template <class H>
void widen_halves(const Tile& tile) {
  for_lanes<float>(tile.count, [from = static_cast<const H*>(tile.in[0]), to = static_cast<float*>(tile.out[0])](
                                   std::int64_t i, const auto& lanes) { lanes.store(to + i, lanes.load(from + i)); });
}
/// Rounds float32 to bfloat16 or float16.
template <class H>
void round_to_halves(const Tile& tile) {
  const auto* from = static_cast<const float*>(tile.in[0]);
  auto* to = static_cast<H*>(tile.out[0]);
  std::int64_t whole = 0;
#ifdef __F16C__
  if constexpr (std::is_same_v<H, float16>)
    for (; whole + 8 <= tile.count; whole += 8)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + whole),
                       _mm256_cvtps_ph(_mm256_loadu_ps(from + whole), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#endif
#pragma omp simd
  for (std::int64_t i = whole; i < tile.count; ++i) to[i] = static_cast<H>(from[i]);
}
/// Converts to float32, such that a second conversion to a half rounds like a single one.
TileFunction cast_before_halves(Dtype from) {
  const auto odd = [](auto x) { return half::rounded_to_odd(x); };
  if (from == Dtype::float64) return loop<float, double>(odd);
  if (from == Dtype::int64) return loop<float, std::int64_t>(odd);
  if (from == Dtype::int32) return loop<float, std::int32_t>(odd);
  return make_cast(from, Dtype::float32);  // exact
}
/// Converts between bfloat16 or float16 and a dtype other than float32. Only one of the two steps rounds.
TileFunction cast_through_floats(Dtype from, Dtype to) {
  return [from, to, first = is_half(to) ? cast_before_halves(from) : make_cast(from, Dtype::float32),
          then = make_cast(Dtype::float32, to)](const Tile& tile) {
    constexpr std::int64_t most = 512;
    std::array<float, most> floats;
    void* const middle = floats.data();
    for (std::int64_t at = 0; at < tile.count; at += most) {
      const std::int64_t count = std::min(most, tile.count - at);
      const void* in = static_cast<const std::byte*>(tile.in[0]) + at * static_cast<std::int64_t>(size_of(from));
      void* out = static_cast<std::byte*>(tile.out[0]) + at * static_cast<std::int64_t>(size_of(to));
      const void* given = middle;
      first({&in, &middle, 0, count});
      then({&given, &out, 0, count});
    }
  };
}

TileFunction dequantize(const KernelForm& form) {
  return with_floating(form.dtype(1), [](auto scalar) {
    using T = decltype(scalar);
    return loop<T, std::int8_t, T>([](std::int8_t x, T scale) { return static_cast<T>(x) * scale; });
  });
}

TileFunction where(const KernelForm& form) {
  return with_scalar(form.dtype(1), [](auto scalar) {
    using T = decltype(scalar);
    return loop<T, bool, T, T>([](bool condition, T a, T b) { return condition ? a : b; });
  });
}

TileFunction masked_fill(const KernelForm& form) {
  return with_number(form.dtype(0), [&](auto scalar) {
    using T = decltype(scalar);
    return loop<T, T, bool>(
        [value = form.attributes.number("value").as<T>()](T x, bool mask) { return mask ? value : x; });
  });
}

/// Clips elements. If a bound is outside of the range of an integer type, the limit of this range replaces the bound.
TileFunction clip(const KernelForm& form) {
  return with_number(form.dtype(0), [&](auto scalar) {
    using T = decltype(scalar);
    const auto bound = [&](const char* name, T limit) {
      const Literal given = form.attributes.number(name);
      return given.fits(dtype_of<T>()) ? given.as<T>() : limit;
    };
    return loop<T, T>([least = bound("low", std::numeric_limits<T>::lowest()),
                       most = bound("high", std::numeric_limits<T>::max())](T x) {
      return x < least ? least : x > most ? most : x;
    });
  });
}

/// Chooses one of two loops by the attribute `approximate`.
template <std::size_t n, class ByTanh, class ByErf>
TileFunction gelu_form(const KernelForm& form, const ByTanh& by_tanh, const ByErf& by_erf) {
  return form.get<std::string>("approximate") == "tanh" ? function<n>(form, by_tanh) : function<n>(form, by_erf);
}

/// A tile function of `f` with two integers. They are computed in int64, and the result is truncated to the dtype.
template <class F>
TileFunction bits(const KernelForm& form, const F& /*f*/) {
  return with_index(form.dtype(0), [](auto scalar) {
    using T = decltype(scalar);
    return loop<T, T, T>([](std::int64_t a, std::int64_t b) { return static_cast<T>(F{}(a, b)); });
  });
}
/// A tile function of `f`, which rounds a float to a whole number.
template <class F>
TileFunction whole(const KernelForm& form, const F& f) {
  return with_floating(form.dtype(0), [&](auto scalar) { return loop<decltype(scalar), decltype(scalar)>(f); });
}

using Call = const KernelForm&;

std::map<std::string_view, TileMaker> plain_loops() {
  return {
      // Numbers. Integers wrap.
      {"add", [](Call c) { return binary(c, wrapping([](auto a, auto b) { return a + b; })); }},
      {"sub", [](Call c) { return binary(c, wrapping([](auto a, auto b) { return a - b; })); }},
      {"mul", [](Call c) { return binary(c, wrapping([](auto a, auto b) { return a * b; })); }},
      {"div",
       [](Call c) {
         const auto quotient = [](auto a, auto b) { return a / b; };
         return with_floating(c.dtype(0),
                              [&](auto x) { return loop<decltype(x), decltype(x), decltype(x)>(quotient); });
       }},
      {"maximum", [](Call c) { return binary(c, [](auto a, auto b) { return a > b || a != a ? a : b; }); }},
      {"minimum", [](Call c) { return binary(c, [](auto a, auto b) { return a < b || a != a ? a : b; }); }},
      {"pow", power},
      {"floor_divide", [](Call c) { return binary(c, FloorQuotient{}); }},
      {"mod", [](Call c) { return binary(c, Remainder{}); }},
      {"neg", [](Call c) { return unary(c, wrapping([](auto x) { return -x; })); }},
      {"abs", [](Call c) { return unary(c, Magnitude{}); }},
      {"sign",
       [](Call c) {
         return unary(c, [](auto x) { return x != x ? x : static_cast<decltype(x)>((x > 0) - (x < 0)); });
       }},
      {"floor", [](Call c) { return unary(c, Floor{}); }},
      {"round", [](Call c) { return whole(c, [](auto x) { return std::nearbyint(x); }); }},
      {"ceil", [](Call c) { return whole(c, [](auto x) { return std::ceil(x); }); }},
      {"trunc", [](Call c) { return whole(c, [](auto x) { return std::trunc(x); }); }},
      {"square", [](Call c) { return unary(c, wrapping([](auto x) { return x * x; })); }},
      {"bitwise_and", [](Call c) { return bits(c, [](auto a, auto b) { return a & b; }); }},
      {"bitwise_or", [](Call c) { return bits(c, [](auto a, auto b) { return a | b; }); }},
      {"bitwise_xor", [](Call c) { return bits(c, [](auto a, auto b) { return a ^ b; }); }},
      {"bitwise_left_shift",
       [](Call c) {
         return bits(c, [](auto a, auto b) { return b < 0 || b > 63 ? 0 : static_cast<std::uint64_t>(a) << b; });
       }},
      {"bitwise_right_shift",
       [](Call c) { return bits(c, [](auto a, auto b) { return a >> (b < 0 || b > 63 ? 63 : b); }); }},
      // Comparisons and logic.
      {"equal", [](Call c) { return comparison(c, [](auto a, auto b) { return a == b; }); }},
      {"not_equal", [](Call c) { return comparison(c, [](auto a, auto b) { return a != b; }); }},
      {"less", [](Call c) { return comparison(c, [](auto a, auto b) { return a < b; }); }},
      {"less_equal", [](Call c) { return comparison(c, [](auto a, auto b) { return a <= b; }); }},
      {"greater", [](Call c) { return comparison(c, [](auto a, auto b) { return a > b; }); }},
      {"greater_equal", [](Call c) { return comparison(c, [](auto a, auto b) { return a >= b; }); }},
      {"logical_and", [](Call) { return loop<bool, bool, bool>([](bool a, bool b) { return a & b; }); }},
      {"logical_or", [](Call) { return loop<bool, bool, bool>([](bool a, bool b) { return a | b; }); }},
      {"logical_not", [](Call) { return loop<bool, bool>([](bool x) { return !x; }); }},
      // Selection.
      {"where", where},
      {"masked_fill", masked_fill},
      {"clip", clip},
      {"cast", [](Call c) { return make_cast(c.dtype(0), c.outputs[0].dtype); }},
      {"dequantize", dequantize},
      {"dropout", make_dropout},
      // Functions of floats.
      {"sqrt", square_roots},
      {"rsqrt",
       [](Call c) {
         return function<1>(
             c, [](const auto& x) { return quotient(std::decay_t<decltype(x)>(1), vector_math::square_root(x)); });
       }},
      {"exp", [](Call c) { return function<1>(c, [](const auto& x) { return vector_math::exp(x); }); }},
      {"expm1", [](Call c) { return function<1>(c, [](const auto& x) { return vector_math::expm1(x); }); }},
      {"log", [](Call c) { return function<1>(c, [](const auto& x) { return vector_math::log(x); }); }},
      {"log1p", [](Call c) { return function<1>(c, [](const auto& x) { return vector_math::log1p(x); }); }},
      {"sin", [](Call c) { return function<1>(c, [](const auto& x) { return vector_math::sin(x); }); }},
      {"cos", [](Call c) { return function<1>(c, [](const auto& x) { return vector_math::cos(x); }); }},
      {"tanh", [](Call c) { return function<1>(c, [](const auto& x) { return vector_math::tanh(x); }); }},
      {"erf", [](Call c) { return function<1>(c, [](const auto& x) { return vector_math::erf(x); }); }},
      {"sigmoid", [](Call c) { return function<1>(c, [](const auto& x) { return vector_math::sigmoid(x); }); }},
      {"relu",
       [](Call c) {
         return function<1>(c, [](const auto& x) {
           const std::decay_t<decltype(x)> zero(0);
           return xsimd::select(x <= zero, zero, x);  // NaN is not <= 0, so it stays
         });
       }},
      {"silu", [](Call c) { return function<1>(c, [](const auto& x) { return x * vector_math::sigmoid(x); }); }},
      {"softplus", [](Call c) { return function<1>(c, [](const auto& x) { return vector_math::softplus(x); }); }},
      {"gelu",
       [](Call c) {
         return gelu_form<1>(
             c, [](const auto& x) { return vector_math::gelu_tanh(x); },
             [](const auto& x) { return vector_math::gelu_erf(x); });
       }},
      {"gelu_grad",
       [](Call c) {
         return gelu_form<2>(
             c, [](const auto& x, const auto& g) { return g * vector_math::gelu_tanh_slope(x); },
             [](const auto& x, const auto& g) { return g * vector_math::gelu_erf_slope(x); });
       }},
  };
}

const std::map<std::string_view, TileMaker>& loops() {
  static const auto all = [] {
    auto both = plain_loops();
    both.merge(wide_functions());
    return both;
  }();
  return all;
}
}  // namespace

TileFunction make_cast(Dtype from, Dtype to) {
  if (is_half(from) && to == Dtype::float32)
    return from == Dtype::bfloat16 ? widen_halves<bfloat16> : widen_halves<float16>;
  if (is_half(to) && from == Dtype::float32)
    return to == Dtype::bfloat16 ? round_to_halves<bfloat16> : round_to_halves<float16>;
  if (is_half(from) || is_half(to)) return cast_through_floats(from, to);
  const auto with_other = [](Dtype dtype, const auto& f) {
    return dtype == Dtype::int8 ? f(std::int8_t{}) : with_scalar(dtype, f);
  };
  return with_other(from, [&](auto given) {
    return with_other(to, [](auto wanted) {
      using From = decltype(given);
      using To = decltype(wanted);
      return loop<To, From>([](From x) { return converted<To>(x); });
    });
  });
}

TileFunction make_tile(const std::string& op, const KernelForm& form) {
  const auto found = loops().find(op);
  if (found == loops().end()) throw Error("there is no loop for the elementwise op '" + op + "'");
  return found->second(form);
}

}  // namespace xtape
