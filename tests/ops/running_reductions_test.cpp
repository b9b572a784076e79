#include <cmath>

#include "constants.hpp"
#include "golden.hpp"
#include "play.hpp"
#include "xtape/ops/reductions.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
const xt::xarray<double> zeros_among{{0.3, 0.0, -0.7}, {2.1, -1.4, 0.9}, {0.0, 0.0, 1.1}};

xt::xarray<double> long_row(std::size_t n) {
  xt::xarray<double> x = xt::xarray<double>::from_shape({n});
  for (std::size_t i = 0; i < n; ++i) x(i) = 1.3 * std::sin(1.7 * static_cast<double>(i) + 0.4);
  return x;
}
/// Compares the elements with a loop, for sizes to which steps of powers of two must fit.
void check_running(const std::function<Var(const Var&)>& function, double (*combine)(double, double)) {
  for (std::size_t n : {0, 1, 2, 3, 4, 5, 7, 8, 9, 33}) {
    const xt::xarray<double> x = long_row(n);
    const Array y = played_on<double>([&](const Vars& v) { return function(v[0]); }, {x});
    REQUIRE(y.count() == static_cast<std::int64_t>(n));
    double wanted = 0;
    for (std::size_t i = 0; i < n; ++i) {
      wanted = i == 0 ? x(0) : combine(wanted, x(i));
      CHECK(close(y.as<double>()[i], wanted, 1e-13));
    }
  }
}
}  // namespace

TEST_CASE("op prod: values, gradients with zeros, integers, any size") {
  check_golden("ops_reductions.json", "prod", 1e-10);
  for (const Axes& axes : {Axes{}, Axes{1}, Axes{0, -1}})
    check_gradients_on([&](const Var& x) { return prod(x, axes); }, points);
  check_gradients_on([](const Var& x) { return prod(x, {1}); }, zeros_among);
  check_gradients_on([](const Var& x) { return prod(x); }, {{0.0, 0.4}, {-0.7, 1.3}});
  for (std::size_t n : {0, 1, 2, 3, 5, 8, 31}) {
    double wanted = 1;
    for (double x : long_row(n)) wanted *= x;
    const Array y = played_on<double>([](const Vars& v) { return prod(v[0]); }, {long_row(n)});
    CHECK(close(y.as<double>()[0], wanted, 1e-13));
  }
  Tape tape;
  CHECK(fast(prod(tape.parameter("b", xt::xarray<bool>{true, false}))).as<std::int64_t>()[0] == 0);
}
TEST_CASE("op cumprod: values of any size, gradients with zeros") {
  check_golden("ops_reductions.json", "cumprod", 1e-10);
  check_running([](const Var& x) { return cumprod(x); }, [](double a, double b) { return a * b; });
  for (std::int64_t axis : {0, 1}) check_gradients_on([axis](const Var& x) { return cumprod(x, axis); }, zeros_among);
  Tape tape;
  CHECK(cumprod(tape.input("n", {2}, Dtype::int32)).dtype() == Dtype::int64);
  CHECK_THROWS_AS(cumprod(tape.input("s", {})), ShapeError);
}
TEST_CASE("op cummax: values of any size, gradients, ties, NaN") {
  check_golden("ops_reductions.json", "cummax", 1e-10);
  check_running([](const Var& x) { return cummax(x).first; }, [](double a, double b) { return std::max(a, b); });
  check_gradients([](const Vars& x) { return Vars{cummax(x[0], 1).first}; }, {points});
  Tape tape;
  CHECK_THROWS_AS(cummax(tape.input("b", {2}, Dtype::boolean)), DtypeError);
}
TEST_CASE("op cummin: values of any size, gradients, ties, NaN") {
  check_golden("ops_reductions.json", "cummin", 1e-10);
  check_running([](const Var& x) { return cummin(x).first; }, [](double a, double b) { return std::min(a, b); });
  check_gradients([](const Vars& x) { return Vars{cummin(x[0], 0).first}; }, {points});
}
TEST_CASE("op logcumsumexp: values of any size, gradients, infinities") {
  check_golden("ops_reductions.json", "logcumsumexp", 1e-10);
  check_running([](const Var& x) { return logcumsumexp(x); },
                [](double a, double b) { return std::log(std::exp(a) + std::exp(b)); });
  for (std::int64_t axis : {0, 2}) check_gradients_on([axis](const Var& x) { return logcumsumexp(x, axis); }, points);
  Tape tape;
  const Var x = tape.parameter("x", xt::xarray<double>{-inf, -inf, 3, -inf, 3});
  const Var y = logcumsumexp(x);
  const Array values = fast(y);
  CHECK(values.as<double>()[1] == -inf);
  CHECK(values.as<double>()[3] == 3);
  CHECK(close(values.as<double>()[4], 3 + std::log(2.0), 1e-15));
  const Array g = fast(grad(sum(masked_fill(y, y == -inf, 0)), {x})[0]);
  for (std::size_t i = 0; i < 5; ++i) CHECK(close(g.as<double>()[i], xt::xarray<double>{0, 0, 2.5, 0, 0.5}(i), 1e-12));
}
