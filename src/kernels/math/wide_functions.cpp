#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "kernels/math/functions.hpp"
#include "kernels/math/gamma.hpp"
#include "kernels/math/special.hpp"
#include "kernels/math/vector_math.hpp"

namespace xtape {

namespace {
using vector_math::Doubles;
using Call = const KernelForm&;

constexpr std::size_t most_inputs = 2;

/// The loop of a function of n floats. `run` computes it for float64. float32 is converted in blocks.
TileFunction widened(const KernelForm& form, std::size_t n, TileFunction run) {
  if (form.dtype(0) == Dtype::float64) return run;
  return [n, run = std::move(run)](const Tile& tile) {
    constexpr std::int64_t block = 64;
    std::array<std::array<double, block>, most_inputs> wide;
    const std::array<const void*, most_inputs> in{wide[0].data(), wide[1].data()};
    void* const out = wide[0].data();
    for (std::int64_t first = 0; first < tile.count; first += block) {
      const std::int64_t count = std::min(block, tile.count - first);
      for (std::size_t k = 0; k < n; ++k)
        std::copy_n(static_cast<const float*>(tile.in[k]) + first, count, wide[k].data());
      run({in.data(), &out, 0, count});
      std::transform(wide[0].data(), wide[0].data() + count, static_cast<float*>(tile.out[0]) + first,
                     [](double y) { return static_cast<float>(y); });
    }
  };
}

const double* input(const Tile& tile, std::size_t k) {
  return static_cast<const double*>(tile.in[k]);
}
double* output(const Tile& tile) {
  return static_cast<double*>(tile.out[0]);
}

/// The loop of a function of n registers.
template <std::size_t n, class F>
TileFunction registers(const KernelForm& form, const F& /*f*/) {
  static_assert(n <= most_inputs);
  return widened(
      form, n, +[](const Tile& tile) {
        std::array<const double*, n> from;
        for (std::size_t k = 0; k < n; ++k) from[k] = input(tile, k);
        vector_math::map_vectors(from, output(tile), tile.count, F{});
      });
}
/// The loops of functions of one or two numbers.
template <class F>
TileFunction each_number(const KernelForm& form, const F& f) {
  return widened(form, 1, [f](const Tile& tile) {
    for (std::int64_t i = 0; i < tile.count; ++i) output(tile)[i] = f(input(tile, 0)[i]);
  });
}
TileFunction each_pair(const KernelForm& form, double (*f)(double, double)) {
  return widened(form, 2, [f](const Tile& tile) {
    for (std::int64_t i = 0; i < tile.count; ++i) output(tile)[i] = f(input(tile, 0)[i], input(tile, 1)[i]);
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
