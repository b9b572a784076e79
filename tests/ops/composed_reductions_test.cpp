#include "xtape/ops/reductions.hpp"

#include <cmath>
#include <limits>

#include "golden.hpp"
#include "play.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
constexpr double inf = std::numeric_limits<double>::infinity();
const xt::xarray<double> points{{{0.3, 1.2, -0.7}, {2.1, -1.4, 0.9}}, {{-0.2, 0.6, 1.7}, {-2.2, 0.1, 1.3}}};
const xt::xarray<double> zeros_among{{0.3, 0.0, -0.7}, {2.1, -1.4, 0.9}, {0.0, 0.0, 1.1}};

/// Gradients for some axes; and the type without elements.
void check_axes(const std::function<Var(const Var&, const Axes&)>& function) {
  for (const Axes& axes : {Axes{}, Axes{1}, Axes{0, -1}})
    check_gradients_on([&](const Var& x) { return function(x, axes); }, points);
}

xt::xarray<double> numbers(std::size_t n) {
  xt::xarray<double> x = xt::xarray<double>::from_shape({n});
  for (std::size_t i = 0; i < n; ++i) x(i) = 1.3 * std::sin(1.7 * static_cast<double>(i) + 0.4);
  return x;
}
/// Of every size, to which steps of powers of two must fit: the elements against a loop.
void check_running(const std::function<Var(const Var&)>& function, double (*combine)(double, double)) {
  for (std::size_t n : {0, 1, 2, 3, 4, 5, 7, 8, 9, 33}) {
    const xt::xarray<double> x = numbers(n);
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
  check_axes([](const Var& x, const Axes& axes) { return prod(x, axes); });
  check_gradients_on([](const Var& x) { return prod(x, {1}); }, zeros_among);
  check_gradients_on([](const Var& x) { return prod(x); }, {{0.0, 0.4}, {-0.7, 1.3}});
  for (std::size_t n : {0, 1, 2, 3, 5, 8, 31}) {
    double wanted = 1;
    for (double x : numbers(n)) wanted *= x;
    const Array y = played_on<double>([](const Vars& v) { return prod(v[0]); }, {numbers(n)});
    CHECK(close(y.as<double>()[0], wanted, 1e-13));
  }
  Tape tape;
  CHECK(fast(prod(tape.parameter("b", xt::xarray<bool>{true, false}))).as<std::int64_t>()[0] == 0);
}
TEST_CASE("op std: values, gradients, none where all are equal") {
  check_golden("ops_reductions.json", "std", 1e-10);
  check_axes([](const Var& x, const Axes& axes) { return standard_deviation(x, axes, false, 1); });
  Tape tape;
  const Var x = tape.parameter("x", xt::xarray<double>{2, 2, 2});
  CHECK(fast(grad(standard_deviation(x), {x})[0]).to<double>() == xt::xarray<double>{0, 0, 0});
  CHECK_THROWS_WITH_AS(standard_deviation(x, {}, false, -1), "std: correction must not be negative, got -1", Error);
}
TEST_CASE("op vector_norm: all orders, gradients, errors") {
  check_golden("ops_reductions.json", "vector_norm", 1e-10);
  for (double p : {1.0, 2.0, 3.0, 1.5, 0.5, -1.0, inf, -inf})
    check_gradients_on([p](const Var& x) { return vector_norm(x, p, {1}); }, points);
  Tape tape;
  const Var x = tape.parameter("x", xt::xarray<double>{{0, 0}, {0, 4}});
  for (double p : {2.0, 3.0, 0.5}) {
    const Array g = fast(grad(sum(vector_norm(x, p, {1})), {x})[0]);
    for (std::size_t i = 0; i < 4; ++i) CHECK(close(g.as<double>()[i], i == 3 ? 1 : 0, 1e-14));
  }
  CHECK_THROWS_WITH_AS(vector_norm(x, std::nan("")), "vector_norm: p must be a number, got NaN", Error);
  CHECK_THROWS_WITH_AS(vector_norm(tape.input("e", {0}), inf),
                       "vector_norm: of order inf needs at least one element, received shape (0,)", ShapeError);
}
TEST_CASE("op nansum: values, gradients") {
  check_golden("ops_reductions.json", "nansum", 1e-10);
  check_axes([](const Var& x, const Axes& axes) { return nansum(square(x), axes); });
}
TEST_CASE("op nanmean: values, gradients, nothing but NaN") {
  check_golden("ops_reductions.json", "nanmean", 1e-10);
  check_axes([](const Var& x, const Axes& axes) { return nanmean(square(x), axes); });
  const Array y = played<double>([](const Vars& x) { return nanmean(x[0]); }, {{std::nan(""), std::nan("")}});
  CHECK(std::isnan(y.as<double>()[0]));
}
TEST_CASE("op count_nonzero: values, bool, NaN") {
  check_golden("ops_reductions.json", "count_nonzero", 1e-10);
  const Array y = played<double>([](const Vars& x) { return count_nonzero(x[0]); }, {{0, -0.0, 1, std::nan("")}});
  CHECK(y.as<std::int64_t>()[0] == 2);
  Tape tape;
  CHECK(fast(count_nonzero(tape.parameter("b", xt::xarray<bool>{true, false, true}))).as<std::int64_t>()[0] == 2);
}
TEST_CASE("op argmin: values, the least integer, NaN, errors") {
  check_golden("ops_reductions.json", "argmin", 1e-10);
  const auto least = std::numeric_limits<std::int64_t>::min();
  CHECK(played<std::int64_t>([](const Vars& x) { return argmin(x[0]); }, {{-5, least, 3, least}}).as<std::int64_t>()[0] ==
        1);
  CHECK(played<double>([](const Vars& x) { return argmin(x[0]); }, {{-inf, std::nan(""), 3}}).as<std::int64_t>()[0] == 1);
  Tape tape;
  CHECK_THROWS_WITH_AS(argmin(tape.input("x", {2, 0})),
                       "argmin: needs at least one element: axis 1 of shape (2, 0) is empty", ShapeError);
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
