#include <cmath>
#include <limits>

#include "golden.hpp"
#include "play.hpp"
#include "xtape/ops/elementwise.hpp"

using namespace xtape;

namespace {
constexpr double infinite = std::numeric_limits<double>::infinity();
const xt::xarray<double> shapes{0.15, 0.5, 1.3, 4.0, 12.0, 25.0};

/// The play's values of a function of two arrays.
template <class T>
Array of_both(Var (*function)(const Operand&, const Operand&), std::initializer_list<T> a, std::initializer_list<T> b) {
  return played<T>([&](const Vars& x) { return function(x[0], x[1]); }, {a, b});
}
}  // namespace

TEST_CASE("op gammainc: values, gradients by both, extremes") {
  check_golden("ops_incomplete_gamma.json", "gammainc", 1e-12, 5e-5);
  check_gradients([](const Vars& x) { return Vars{gammainc(x[0], x[1])}; },
                  {shapes, xt::xarray<double>{0.02, 1.4, 0.7, 3.1, 14.5, 22.0}});
  check_gradients([](const Vars& x) { return Vars{gammainc(x[0], 0.8)}; }, {listed<double>({0.3, 2.5})});
  const Array y = of_both<double>(gammainc, {1, 1, 0, -1, 2, 1e12}, {0, infinite, 1, 1, -1, 1e12});
  for (std::size_t i = 0; i < 6; ++i)
    CHECK(close(y.as<double>()[i], xt::xarray<double>{0, 1, std::nan(""), std::nan(""), std::nan(""), 0.5}(i), 1e-6));
}
TEST_CASE("op gammaincinv: undoes gammainc, gradients by both, extremes") {
  const xt::xarray<double> p{1e-12, 1e-3, 0.3, 0.5, 0.9, 0.999};
  for (const double a : {0.2, 1.0, 7.0, 350.0, 2e5, 3e8}) {
    const Array back = played_on<double>([&](const Vars& x) { return gammainc(a, gammaincinv(a, x[0])); }, {p});
    for (std::size_t i = 0; i < p.size(); ++i)
      CHECK(std::abs(back.as<double>()[i] / p(i) - 1) < (a > 1e4 ? 1e-9 : 1e-12));
  }
  check_gradients([](const Vars& x) { return Vars{gammaincinv(x[0], x[1])}; },
                  {shapes, xt::xarray<double>{0.8, 0.2, 0.7, 0.5, 0.1, 0.95}});
  const Array y = of_both<double>(gammaincinv, {2, 2, 2, 0, 1e-3}, {0, 1, 1.5, 0.5, 1e-6});
  for (std::size_t i = 0; i < 5; ++i)
    CHECK(close(y.as<double>()[i], xt::xarray<double>{0, infinite, std::nan(""), std::nan(""), 0}(i), 0));
  for (const double a : {3.0, 1000.0, 1e6}) {
    const xt::xarray<double> small{1e-17, 0x1p-54, 1e-300};
    const Array back = played_on<double>([&](const Vars& x) { return gammainc(a, gammaincinv(a, x[0])); }, {small});
    for (std::size_t i = 0; i < small.size(); ++i) CHECK(std::abs(back.as<double>()[i] / small(i) - 1) < 1e-6);
  }
}
TEST_CASE("op gammainc: the density keeps its digits in float32") {
  Tape tape;
  const Var x = tape.constant(xt::xarray<float>{0.F, 1e5F}), a = tape.constant(xt::xarray<float>{1.F, 1e5F});
  const Array slope = evaluate(grad(sum(gammainc(a, x)), {x})[0]);
  CHECK(slope.as<float>()[0] == 1);
  CHECK(std::abs(slope.as<float>()[1] * std::sqrt(2 * M_PI * 1e5) - 1) < 1e-5);
}
TEST_CASE("op poisson_quantile: tiny probabilities") {
  CHECK(of_both<double>(poisson_quantile, {0x1p-54}, {1000}).as<double>()[0] == 749);
}
TEST_CASE("op poisson_quantile: a sum of probabilities for any rate, extremes") {
  for (const double rate : {1e-3, 0.7, 9.0, 250.0}) {
    double k = 0, mass = std::exp(-rate), below = mass;
    for (const double p : {1e-6, 0.03, 0.5, 0.77, 0.999, 1 - 1e-9}) {
      for (; below < p; below += mass) mass *= rate / ++k;
      CHECK(of_both<double>(poisson_quantile, {p}, {rate}).as<double>()[0] == k);
    }
  }
  const Array y = of_both<double>(poisson_quantile, {0, 1, 0.5, 0.5, 2, 0.5}, {3, 3, 0, -1, 3, 1e12});
  for (std::size_t i = 0; i < 6; ++i)
    CHECK(close(y.as<double>()[i], xt::xarray<double>{0, infinite, 0, std::nan(""), std::nan(""), 1e12}(i), 1e-6));
}
