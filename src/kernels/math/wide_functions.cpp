#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/elements/scalar.hpp"
#include "kernels/math/functions.hpp"
#include "kernels/math/gamma.hpp"
#include "kernels/math/special.hpp"
#include "kernels/math/vector_math.hpp"

namespace xtape {

namespace {
using vector_math::Doubles;
using Call = const KernelForm&;

/// The loop of a function of n floats: run(in, out, count) computes it for arrays of float64. float32 is converted in
/// blocks.
template <std::size_t n, class Run>
TileFunction widened_loop(const KernelForm& form, const Run& run) {
  return with_floating(form.dtype(0), [&](auto scalar) -> TileFunction {
    using T = decltype(scalar);
    return [run](const Tile& tile) {
      constexpr std::int64_t block = std::is_same_v<T, double> ? std::numeric_limits<std::int64_t>::max() : 64;
      auto* to = static_cast<T*>(tile.out[0]);
      for (std::int64_t first = 0; first < tile.count; first += std::min(block, tile.count)) {
        const std::int64_t count = std::min(block, tile.count - first);
        std::array<const double*, n> from;
        if constexpr (std::is_same_v<T, double>) {
          for (std::size_t k = 0; k < n; ++k) from[k] = static_cast<const double*>(tile.in[k]);
          run(from, to, count);
        } else {
          std::array<std::array<double, block>, n> wide;
          for (std::size_t k = 0; k < n; ++k) {
            std::copy_n(static_cast<const T*>(tile.in[k]) + first, count, wide[k].data());
            from[k] = wide[k].data();
          }
          run(from, wide[0].data(), count);
          std::transform(wide[0].data(), wide[0].data() + count, to + first,
                         [](double y) { return static_cast<T>(y); });
        }
      }
    };
  });
}

/// The loop of a function of n registers.
template <std::size_t n, class F>
TileFunction registers(const KernelForm& form, const F& /*f*/) {
  return widened_loop<n>(form, [](const std::array<const double*, n>& from, double* to, std::int64_t count) {
    vector_math::map_vectors(from, to, count, F{});
  });
}
/// The loops of functions of one or two numbers.
template <class F>
TileFunction each_number(const KernelForm& form, const F& f) {
  return widened_loop<1>(form, [f](const std::array<const double*, 1>& from, double* to, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = f(from[0][i]);
  });
}
TileFunction each_pair(const KernelForm& form, double (*f)(double, double)) {
  return widened_loop<2>(form, [f](const std::array<const double*, 2>& from, double* to, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = f(from[0][i], from[1][i]);
  });
}
}  // namespace

std::map<std::string_view, TileMaker> wide_functions() {
  return {
      {"tan", [](Call c) { return registers<1>(c, [](const Doubles& x) { return vector_math::tan(x); }); }},
      {"asin", [](Call c) { return registers<1>(c, [](const Doubles& x) { return vector_math::asin(x); }); }},
      {"acos", [](Call c) { return registers<1>(c, [](const Doubles& x) { return vector_math::acos(x); }); }},
      {"atan", [](Call c) { return registers<1>(c, [](const Doubles& x) { return vector_math::atan(x); }); }},
      {"sinh", [](Call c) { return registers<1>(c, [](const Doubles& x) { return vector_math::sinh(x); }); }},
      {"cosh", [](Call c) { return registers<1>(c, [](const Doubles& x) { return vector_math::cosh(x); }); }},
      {"asinh", [](Call c) { return registers<1>(c, [](const Doubles& x) { return vector_math::asinh(x); }); }},
      {"acosh", [](Call c) { return registers<1>(c, [](const Doubles& x) { return vector_math::acosh(x); }); }},
      {"atanh", [](Call c) { return registers<1>(c, [](const Doubles& x) { return vector_math::atanh(x); }); }},
      {"exp2", [](Call c) { return registers<1>(c, [](const Doubles& x) { return vector_math::exp2(x); }); }},
      {"log2", [](Call c) { return registers<1>(c, [](const Doubles& x) { return vector_math::log2(x); }); }},
      {"log10", [](Call c) { return registers<1>(c, [](const Doubles& x) { return vector_math::log10(x); }); }},
      {"erfc", [](Call c) { return registers<1>(c, [](const Doubles& x) { return vector_math::erfc(x); }); }},
      {"erfinv", [](Call c) { return registers<1>(c, [](const Doubles& x) { return vector_math::erfinv(x); }); }},
      {"atan2",
       [](Call c) {
         return registers<2>(c, [](const Doubles& y, const Doubles& x) { return vector_math::atan2(y, x); });
       }},
      {"hypot",
       [](Call c) {
         return registers<2>(c, [](const Doubles& a, const Doubles& b) { return vector_math::hypot(a, b); });
       }},
      {"lgamma", [](Call c) { return registers<1>(c, [](const Doubles& x) { return vector_math::log_gamma(x); }); }},
      {"digamma", [](Call c) { return registers<1>(c, [](const Doubles& x) { return vector_math::digamma(x); }); }},
      {"polygamma",
       [](Call c) {
         const auto order = static_cast<double>(c.get<std::int64_t>("n"));
         return each_number(c, [order](double x) { return number_math::polygamma(order, x); });
       }},
      {"gammainc", [](Call c) { return each_pair(c, number_math::gammainc); }},
      {"gammaincinv", [](Call c) { return each_pair(c, number_math::gammaincinv); }},
      {"poisson_quantile", [](Call c) { return each_pair(c, number_math::poisson_quantile); }},
  };
}

}  // namespace xtape
