// Values that equations define, and their derivatives.
#include "xtape/implicit.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "differences.hpp"
#include "folders.hpp"
#include "xtape/derivatives.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"
#include "xtape/vmap.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
using Reals = xt::xarray<double>;

RootOptions close_root() {
  RootOptions options;
  options.atol = 1e-10;
  options.linear.rtol = 1e-13;
  return options;
}
/// x with x³ + a x = 1.
Var cubic(const Var& a) {
  return implicit_root([&](const Var& x) { return x * x * x + a * x - 1; }, ones_like(a), close_root());
}
double cubic_at(double a) {
  double x = 1;
  for (int i = 0; i < 100; ++i) x -= (x * x * x + a * x - 1) / (3 * x * x + a);
  return x;
}
}  // namespace

TEST_CASE("implicit_root: derivatives of three orders against those of a formula") {
  Tape tape;
  const Var a = tape.input("a", {}, Dtype::float64);
  const Var x = implicit_root([&](const Var& v) { return v * v - a; }, ones_like(a), close_root());
  const Var first = grad(x, {a})[0], second = grad(first, {a})[0], third = grad(second, {a})[0];
  const Reals two(2.0);
  const auto play = [&](const Var& var) { return evaluate(var, {{a, two}}).to<double>()(); };
  CHECK(play(x) == doctest::Approx(std::sqrt(2)));
  CHECK(play(first) == doctest::Approx(0.5 * std::pow(2, -0.5)));
  CHECK(play(second) == doctest::Approx(-0.25 * std::pow(2, -1.5)));
  CHECK(play(third) == doctest::Approx(0.375 * std::pow(2, -2.5)));
  CHECK(play(jvp({first}, {a}, {ones_like(a)})[0]) == doctest::Approx(-0.25 * std::pow(2, -1.5)));
}

TEST_CASE("implicit_root: a system of several arrays, by what its function uses, against differences") {
  Tape tape;
  const Var w = tape.input("w", {3, 3}, Dtype::float64), b = tape.input("b", {3}, Dtype::float64),
            c = tape.input("c", {}, Dtype::float64), order = tape.input("order", {3}, Dtype::int64);
  const auto f = [&](const Vars& x) {
    return Vars{3 * x[0] + tanh(matmul(w, x[0])) * x[1] - take(b, order), 2 * x[1] + sum(sin(x[0])) - c};
  };
  const Vars x = implicit_root(f, {zeros(tape, {3}, Dtype::float64), zeros(tape, {}, Dtype::float64)}, close_root());
  const Var y = sum(square(x[0])) + 3 * x[1];
  const Vars slopes = grad(y, {w, b, c});
  Reals at_w{{0.3, -0.7, 0.2}, {0.5, 0.1, -0.4}, {-0.2, 0.6, 0.9}}, at_b{0.4, -1.0, 0.7}, at_c(0.8);
  const xt::xarray<std::int64_t> turned{2, 0, 1};
  const auto play = [&](const Var& var) {
    return evaluate(var, {{w, at_w}, {b, at_b}, {c, at_c}, {order, turned}}).to<double>();
  };
  for (const Var& residual : f(x))
    for (const double each : play(residual)) CHECK(std::abs(each) < 1e-10);
  const Reals found[] = {play(slopes[0]), play(slopes[1]), play(slopes[2])};
  Reals* const points[] = {&at_w, &at_b, &at_c};
  for (std::size_t k = 0; k < 3; ++k)
    for (std::size_t i = 0; i < points[k]->size(); ++i) {
      const double expected = test::slope_by(points[k]->flat(i), [&] { return play(y)(); });
      CHECK(found[k].flat(i) == doctest::Approx(expected).epsilon(1e-6));
    }
}

TEST_CASE("implicit_root: vmap finds a root per example, with its gradient") {
  Tape tape;
  const Var a = tape.input("a", {4}, Dtype::float64);
  const Var x = vmap([](const Vars& each) { return Vars{cubic(each[0])}; }, {a})[0];
  const Var slope = grad(sum(x), {a})[0];
  const Reals at{0.5, 2.0, 10.0, 100.0};
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(evaluate(x, {{a, at}}).to<double>()(i) == doctest::Approx(cubic_at(at(i))));
    const double root = cubic_at(at(i));
    CHECK(evaluate(slope, {{a, at}}).to<double>()(i) == doctest::Approx(-root / (3 * root * root + at(i))));
  }
  const Var per_example = vmap([](const Vars& each) { return grad(cubic(each[0]), {each[0]}); }, {a})[0];
  CHECK(xt::allclose(evaluate(per_example, {{a, at}}).to<double>(), evaluate(slope, {{a, at}}).to<double>()));
}

TEST_CASE("implicit_root: a solver of one's own, whose ops need no gradient") {
  Tape tape;
  const Var a = tape.input("a", {}, Dtype::float64);
  RootOptions options = close_root();
  // The root of v² = a on a grid of 1/1024, which floor finds; a has to fit.
  options.solver = [&](const Vars&) { return Vars{floor(sqrt(a) * 1024 + 0.5) / 1024}; };
  const Var x = implicit_root([&](const Var& v) { return v * v - a; }, zeros_like(a), options);
  const Reals square(2.25);
  CHECK(evaluate(x, {{a, square}}).to<double>()() == 1.5);
  CHECK(evaluate(grad(x, {a})[0], {{a, square}}).to<double>()() == doctest::Approx(1 / 3.0));
}

TEST_CASE("fixed_point: an equilibrium layer, against iteration and differences") {
  Tape tape;
  const Var w = tape.input("w", {2, 2}, Dtype::float64), u = tape.input("u", {2}, Dtype::float64);
  FixedPointOptions options;
  options.rtol = 1e-13;
  options.atol = 0;
  options.linear.rtol = 1e-13;
  const Var x = fixed_point([&](const Var& v) { return tanh(matmul(w, v) + u); }, zeros_like(u), options);
  const Var y = sum(x * square(x));
  const Vars slopes = grad(y, {w, u});
  Reals at_w{{0.4, -0.3}, {0.2, 0.5}}, at_u{0.7, -0.2};
  const auto expected = [&] {
    double a = 0, b = 0;
    for (int i = 0; i < 1000; ++i) {
      const double next = std::tanh(at_w(0, 0) * a + at_w(0, 1) * b + at_u(0));
      b = std::tanh(at_w(1, 0) * a + at_w(1, 1) * b + at_u(1));
      a = next;
    }
    return a * a * a + b * b * b;
  };
  const auto play = [&](const Var& var) { return evaluate(var, {{w, at_w}, {u, at_u}}).to<double>(); };
  CHECK(play(y)() == doctest::Approx(expected()));
  const Reals found[] = {play(slopes[0]), play(slopes[1])};
  Reals* const points[] = {&at_w, &at_u};
  for (std::size_t k = 0; k < 2; ++k)
    for (std::size_t i = 0; i < points[k]->size(); ++i) {
      CHECK(found[k].flat(i) == doctest::Approx(test::slope_by(points[k]->flat(i), expected)).epsilon(1e-6));
    }
}

TEST_CASE("implicit_root: roots of any size in float32") {
  Tape tape;
  const Var a = tape.input("a", {});
  const Var x = implicit_root([&](const Var& v) { return v * v - a; }, ones_like(a));
  for (const float square : {1e-4f, 3.0f, 30.0f, 1000.0f, 1e8f})
    CHECK(evaluate(x, {{a, xt::xarray<float>(square)}}).to<float>()() ==
          doctest::Approx(std::sqrt(square)).epsilon(1e-5));
}

TEST_CASE("implicit_root: the guess has no gradient, whatever the function uses") {
  Tape tape;
  const Var a = tape.input("a", {}, Dtype::float64), guess = tape.input("guess", {}, Dtype::float64);
  CHECK_THROWS_AS(grad(implicit_root([](const Var& v) { return v * v - 2; }, guess), {guess}), Error);
  CHECK_THROWS_AS(grad(implicit_root([&](const Var& v) { return v * v - a; }, guess), {guess}), Error);
}

TEST_CASE("implicit functions and gradients inside vmap can be saved and loaded") {
  const test::Folder folder;
  Tape tape;
  const Var a = tape.input("a", {2}, Dtype::float64);
  const Var x = implicit_root([&](const Var& v) { return v * v - a; }, ones_like(a), close_root());
  const auto slope = [](const Vars& v) { return grad(v[0] * v[0], {v[0]}); };
  const Vars found{x, grad(sum(x), {a})[0], vmap(slope, {a})[0]};
  const auto path = folder / "tape";
  tape.save(path, {{"x", found[0]}, {"slope", found[1]}, {"mapped", found[2]}});
  const SavedTape saved = Tape::load(path);
  const Reals at{2.0, 9.0};
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(evaluate(saved.outputs[i].value, {{saved.inputs[0].value, at}}).to<double>() ==
          evaluate(found[i], {{a, at}}).to<double>());
}

TEST_CASE("implicit functions: NaN if nothing was found, in float32, without parameters") {
  Tape tape;
  const Var a = tape.input("a", {});
  const auto alone = [&](const Var& var, float at) {
    return evaluate(var, {{a, xt::xarray<float>(at)}}).to<float>()();
  };
  const Var none = implicit_root([&](const Var& x) { return x * x + a; }, ones_like(a));
  CHECK(std::isnan(alone(none, 1)));
  CHECK(std::isnan(alone(fixed_point([&](const Var& x) { return 2 * x + a; }, ones_like(a)), 1)));
  CHECK(std::isnan(alone(fixed_point([&](const Var& x) { return 0.5 * x + a; }, ones_like(a)), NAN)));
  CHECK(alone(fixed_point([&](const Var& x) { return 0.5 * x + a; }, ones_like(a)), 3) ==
        doctest::Approx(6).epsilon(1e-5));
  const Var two = implicit_root([](const Var& x) { return x * x - 4; }, ones(tape, {}));
  CHECK(alone(two, 0) == doctest::Approx(2));
  CHECK_THROWS_AS(grad(two, {a}), Error);
}

TEST_CASE("implicit functions: mistakes are errors, and leave the tape as it was") {
  Tape tape, other;
  const Var x = tape.input("x", {3}), n = tape.input("n", {3}, Dtype::int64), far = other.input("x", {3}),
            wide = tape.input("w", {3}, Dtype::float64);
  const std::size_t size = tape.size();
  using Function = std::function<Vars(const Vars&)>;
  const Function same = [](const Vars& v) { return v; };
  CHECK_THROWS_AS(implicit_root(Function(), {x}), Error);
  CHECK_THROWS_AS(fixed_point(std::function<Var(const Var&)>(), x), Error);
  CHECK_THROWS_AS(implicit_root(same, Vars{}), Error);
  CHECK_THROWS_AS(implicit_root(same, {n}), DtypeError);
  CHECK_THROWS_WITH_AS(fixed_point(same, {x, wide}), doctest::Contains("one float dtype"), DtypeError);
  CHECK_THROWS_AS(fixed_point(same, {x, far}), HandleError);
  const auto shorter = [](const Var& v) { return slice(v, {0}, {2}); };
  CHECK_THROWS_WITH_AS(implicit_root(shorter, x),
                       doctest::Contains("function must give float32 (3,), got float32 (2,)"), ShapeError);
  CHECK_THROWS_AS(fixed_point(shorter, x), ShapeError);
  CHECK_THROWS_AS(implicit_root([&](const Var&) { return far; }, x), HandleError);
  RootOptions options;
  options.atol = -1;
  CHECK_THROWS_WITH_AS(implicit_root(same, {x}, options), doctest::Contains("must not be negative"), Error);
  options = {};
  options.max_steps = 0;
  CHECK_THROWS_WITH_AS(implicit_root(same, {x}, options), doctest::Contains("max_steps must be at least 1"), Error);
  options = {};
  CHECK_THROWS_WITH_AS(fixed_point([](const Var& v) { return dropout(v, 0.5); }, x), doctest::Contains("draws random"),
                       Error);
  options.solver = [&](const Vars&) { return Vars{wide}; };
  CHECK_THROWS_WITH_AS(implicit_root(same, {x}, options), doctest::Contains("the solver must give"), ShapeError);
  CHECK(tape.size() == size);
}
