// Ordinary differential equations and their derivatives.
#include "xtape/odeint.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "differences.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"
#include "xtape/vmap.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
using Series = xt::xarray<double>;

OdeOptions close_to(OdeGradient gradient) {
  OdeOptions options;
  options.rtol = 1e-10;
  options.atol = 1e-12;
  options.gradient = gradient;
  return options;
}
Series played(const Var& var, const std::vector<Feed>& feeds) {
  Player player(var.tape(), {var});
  player.play(feeds);
  return player.value<double>(var);
}
const OdeGradient both[] = {OdeGradient::adjoint, OdeGradient::steps};
}  // namespace

TEST_CASE("odeint: an oscillator forward and backward in time, at several times") {
  Tape tape;
  const Var y0 = tape.input("y0", {2}, Dtype::float64), times = tape.input("times", {4}, Dtype::float64);
  const auto turn = [](const Var& y, const Var&) { return concat({slice(y, {1}, {2}), -slice(y, {0}, {1})}, 0); };
  const Series start{1.0, 0.0};
  for (const Series& at : {Series{0.0, 0.5, 2.0, 7.0}, Series{0.0, -1.0, -1.0, -4.0}, Series{0.0, 3.0, 1.0, 2.0}})
    for (const OdeGradient gradient : both) {
      const Series y = played(odeint(turn, y0, times, close_to(gradient)), {{y0, start}, {times, at}});
      REQUIRE(y.shape() == Series::shape_type{4, 2});
      for (std::size_t i = 0; i < 4; ++i) {
        CHECK(std::abs(y(i, 0) - std::cos(at(i))) < 1e-8);
        CHECK(std::abs(y(i, 1) + std::sin(at(i))) < 1e-8);
      }
    }
}

TEST_CASE("odeint: an equation that depends on time, with several arrays, and derivatives by all that it depends on") {
  // u' = -k u + sin(w t), v' = u v, in arrays of other shapes.
  for (const OdeGradient gradient : both) {
    Tape tape;
    const Var u = tape.input("u", {2}, Dtype::float64), v = tape.input("v", {}, Dtype::float64),
              k = tape.input("k", {2}, Dtype::float64), w = tape.input("w", {}, Dtype::float64),
              times = tape.input("times", {3}, Dtype::float64), which = tape.input("which", {}, Dtype::int64);
    const auto f = [&](const Vars& y, const Var& t) { return Vars{-k * y[0] + sin(w * t), take(y[0], which) * y[1]}; };
    const Vars y = odeint(f, {u, v}, times, close_to(gradient));
    const Var loss = sum(square(y[0])) + sum(y[1] * iota(tape, {3}));
    const Vars slopes = grad(loss, {u, v, k, w, times});
    Series at_u{0.5, -1.0}, at_v(0.7), at_k{1.0, 0.3}, at_w(2.0), at_times{0.1, 0.9, 1.7};
    const xt::xarray<std::int64_t> one(1);
    const auto feeds = [&] {
      return std::vector<Feed>{{u, at_u}, {v, at_v}, {k, at_k}, {w, at_w}, {times, at_times}, {which, one}};
    };
    Series* const points[] = {&at_u, &at_v, &at_k, &at_w, &at_times};
    Player player(tape, {loss});
    const auto value = [&] {
      player.play(feeds());
      return player.value<double>(loss)();
    };
    for (std::size_t n = 0; n < 5; ++n) {
      const Series found = played(slopes[n], feeds());
      for (std::size_t i = 0; i < points[n]->size(); ++i) {
        CAPTURE(n);
        const double expected = test::slope_by(points[n]->flat(i), value, 1e-4);
        CHECK(found.flat(i) == doctest::Approx(expected).epsilon(1e-5));
      }
    }
  }
}

TEST_CASE("odeint: second derivatives, jvp and vmap") {
  // y' = -k y: y = y0 exp(-k t).
  for (const OdeGradient gradient : both) {
    OdeOptions options = close_to(gradient);
    options.max_steps = 60;
    options.rtol = 1e-8;
    const auto decay = [&](const Vars& given) {
      const Var times = iota(given[0].tape(), {2}, 0, Dtype::float64) * 2;
      const auto f = [&](const Var& y, const Var&) { return -given[0] * y; };
      return squeeze(slice(odeint(f, given[1], times, options), {1}, {2}), {0});
    };
    Tape tape;
    const Var k = tape.input("k", {3}, Dtype::float64), y0 = tape.input("y0", {3}, Dtype::float64);
    const Series rates{0.1, 0.8, 2.0}, starts{1.0, -2.0, 0.5};
    const std::vector<Feed> feeds{{k, rates}, {y0, starts}};
    const Var y = vmap([&](const Vars& each) { return Vars{decay(each)}; }, {k, y0})[0];
    const Var slope = grad(sum(y), {k})[0], second = grad(sum(slope), {k})[0];
    const Var along = jvp({y}, {k}, {ones_like(k)})[0];
    const Series value = played(y, feeds), first = played(slope, feeds), forward = played(along, feeds),
                 curvature = played(second, feeds);
    for (std::size_t i = 0; i < 3; ++i) {
      const double expected = starts(i) * std::exp(-2 * rates(i));
      CHECK(value(i) == doctest::Approx(expected).epsilon(1e-6));
      CHECK(first(i) == doctest::Approx(-2 * expected).epsilon(1e-5));
      CHECK(forward(i) == doctest::Approx(-2 * expected).epsilon(1e-5));
      CHECK(curvature(i) == doctest::Approx(4 * expected).epsilon(1e-4));
    }
  }
}

TEST_CASE("odeint: one time, float32, and NaN where a time is not reached") {
  Tape tape;
  const Var y0 = tape.input("y0", {2}), times = tape.input("times", {3});
  const auto play = [&](const Var& var, float last) {
    Player player(tape, {var});
    player.play({{y0, xt::xarray<float>{1, 2}}, {times, xt::xarray<float>{0, 0.5f, last}}});
    return player.value<float>(var);
  };
  OdeOptions options;
  options.rtol = 1e-4;
  options.atol = 1e-5;
  const auto grows = [](const Var& y, const Var&) { return y; };
  CHECK(play(odeint(grows, y0, times, options), 1)(2, 1) == doctest::Approx(2 * std::exp(1)).epsilon(1e-3));
  CHECK(play(odeint(grows, y0, slice(times, {0}, {1})), 1) == xt::xarray<float>{{1, 2}});
  // y' = y²: y = 1 / (1 / y0 - t) is infinite at t = 1 / y0.
  const auto found = play(odeint([](const Var& y, const Var&) { return square(y); }, y0 / 2, times, options), 3);
  CHECK(found(1, 1) == doctest::Approx(2).epsilon(1e-3));
  CHECK(std::isnan(found(2, 1)));
}

TEST_CASE("odeint: gradients by equal times, and NaN where the solution is") {
  for (const OdeGradient gradient : both) {
    Tape tape;
    const Var y0 = tape.input("y0", {}, Dtype::float64), times = tape.input("times", {4}, Dtype::float64);
    const auto f = [](const Var& y, const Var& t) { return -y * t; };  // y = y0 exp((t0² - t²) / 2)
    const Var y = odeint(f, y0, times, close_to(gradient));
    const Series start(2.0), at{0.5, 1.0, 1.0, 2.0};
    const Series found = played(grad(sum(y * (iota(tape, {4}) + 1)), {times})[0], {{y0, start}, {times, at}});
    const auto value = [&](std::size_t i) { return 2 * std::exp((0.25 - at(i) * at(i)) / 2); };
    for (std::size_t i = 1; i < 4; ++i)
      CHECK(found(i) == doctest::Approx(-at(i) * value(i) * static_cast<double>(i + 1)).epsilon(1e-6));
    CHECK(found(0) == doctest::Approx(0.5 * (2 * value(1) + 3 * value(2) + 4 * value(3))).epsilon(1e-6));

    OdeOptions brief = close_to(gradient);
    brief.max_steps = 2;
    const Var unreached = odeint(f, y0, times, brief);
    CHECK(std::isnan(played(grad(sum(unreached), {y0})[0], {{y0, start}, {times, at}})()));
  }
}

TEST_CASE("odeint: the adjoint of an equation that forgets its past is NaN, and steps give its gradient") {
  Tape tape;
  const Var k = tape.input("k", {}, Dtype::float64), times = tape.input("times", {2}, Dtype::float64);
  const auto f = [&](const Var& y, const Var& t) { return -k * sin(y) + 0.1 * sin(t); };
  const Series span{0.0, 10.0};
  const auto slope = [&](OdeGradient gradient, double at) {
    OdeOptions options;
    options.gradient = gradient;
    const Var y = odeint(f, ones_like(k), times, options);
    return played(grad(sum(slice(y, {1}, {2})), {k})[0], {{k, Series(at)}, {times, span}})();
  };
  // A slope of 0.00069 by differences of solutions.
  CHECK(slope(OdeGradient::steps, 5.0) == doctest::Approx(0.00069).epsilon(0.02));
  CHECK(std::isnan(slope(OdeGradient::adjoint, 5.0)));
  CHECK(slope(OdeGradient::adjoint, 0.5) == doctest::Approx(slope(OdeGradient::steps, 0.5)).epsilon(1e-3));
}

TEST_CASE("odeint: the gradient of a state that begins or passes at 0") {
  // A pendulum without friction begins at rest: the speed at the start is 0, and its tolerance there is not atol alone.
  Tape tape(Dtype::float64);
  const Var y0 = tape.input("y0", {2});
  const auto pendulum = [](const Var& y, const Var&) { return stack({y.at(1), -sin(y.at(0))}, 0); };
  for (const std::int64_t times : {2, 3, 5})
    for (const double rtol : {1e-4, 1e-6, 1e-9}) {
      CAPTURE(times);
      CAPTURE(rtol);
      OdeOptions options;
      options.rtol = rtol;
      const auto slope = [&](OdeGradient gradient) {
        options.gradient = gradient;
        const Var end = odeint(pendulum, y0, linspace(tape, 0, 10, times), options).at(-1, 0);
        return played(grad(end, {y0})[0], {{y0, xt::xarray<double>{1, 0}}});
      };
      const auto adjoint = slope(OdeGradient::adjoint), steps = slope(OdeGradient::steps);
      for (const int i : {0, 1}) CHECK(adjoint(i) == doctest::Approx(steps(i)).epsilon(200 * rtol));
    }
}

TEST_CASE("odeint: mistakes are errors, and leave the tape as it was") {
  Tape tape, other;
  const Var y = tape.input("y", {2}), times = tape.input("t", {3}), wide = tape.input("w", {3}, Dtype::float64),
            whole = tape.input("n", {3}, Dtype::int64), far = other.input("y", {2}), table = reshape(times, {1, 3}),
            none = slice(times, {0}, {0});
  const std::size_t size = tape.size();
  const auto same = [](const Var& state, const Var&) { return state; };
  CHECK_THROWS_AS(odeint(OdeFunction(), {y}, times), Error);
  CHECK_THROWS_AS(odeint(std::function<Var(const Var&, const Var&)>(), y, times), Error);
  CHECK_THROWS_AS(odeint([](const Vars& state, const Var&) { return state; }, Vars{}, times), Error);
  CHECK_THROWS_AS(odeint(same, far, times), HandleError);
  CHECK_THROWS_WITH_AS(odeint(same, y, wide), doctest::Contains("one float dtype"), DtypeError);
  CHECK_THROWS_AS(odeint(same, whole, times), DtypeError);
  CHECK_THROWS_WITH_AS(odeint(same, y, table), doctest::Contains("must be a vector"), ShapeError);
  CHECK_THROWS_AS(odeint(same, y, none), ShapeError);
  CHECK_THROWS_WITH_AS(odeint([](const Var& state, const Var&) { return sum(state); }, y, times),
                       doctest::Contains("function must give float32 (2,), got float32 ()"), ShapeError);
  OdeOptions options;
  options.max_steps = 0;
  CHECK_THROWS_AS(odeint(same, y, times, options), Error);
  options = {};
  options.atol = 0;
  CHECK_THROWS_WITH_AS(odeint(same, y, times, options), doctest::Contains("atol must be above 0"), Error);
  options = {};
  options.rtol = NAN;
  CHECK_THROWS_AS(odeint(same, y, times, options), Error);
  CHECK(tape.size() == size);
}
