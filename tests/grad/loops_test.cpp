// Values and derivatives of while_loop and cond.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <set>

#include "played_loops.hpp"
#include "xtape/derivatives.hpp"
#include "xtape/scan.hpp"
#include "xtape/vmap.hpp"
#include "xview.hpp"

using namespace xtape;
using namespace xtape::test;

TEST_CASE("while_loop: Newton's method stops by itself, and has the derivatives of the root") {
  Tape tape;
  const Var x = tape.input("x", {}, Dtype::float64);
  const Looped loop = root(x);
  const Var first = grad(loop.states[0], {x})[0];
  const Vars all{loop.states[0], loop.steps,          loop.unfinished,
                 first,          grad(first, {x})[0], jvp({loop.states[0]}, {x}, {ones_like(x)})[0]};
  CHECK(loop.steps.type() == ValueType{Dtype::int64, {}});
  CHECK(loop.unfinished.type() == ValueType{Dtype::boolean, {}});
  for (const double a : {1.0, 2.0, 0.01, 300.0}) {
    CAPTURE(a);
    const std::vector<Numbers> found = values(tape, all, {{x, Numbers(a)}});
    CHECK(found[0]() == doctest::Approx(std::sqrt(a)));
    CHECK(found[1]() == steps_of_root(a));
    CHECK(found[2]() == 0);
    if (a == 1) continue;  // no step: the result is x
    CHECK(found[3]() == doctest::Approx(0.5 / std::sqrt(a)).epsilon(1e-3));
    CHECK(found[4]() == doctest::Approx(-0.25 / std::pow(a, 1.5)).epsilon(1e-2));
    CHECK(found[5]() == doctest::Approx(found[3]()));
  }
}

TEST_CASE("while_loop: states of any dtype: Collatz's sequences") {
  Tape tape;
  const Var start = tape.input("n", {}, Dtype::int64);
  const auto one = [](const Var& n) {
    return while_loop([](const Vars& s) { return s[0] != 1; },
                      [](const Vars& s) {
                        const Var odd = mod(s[0], 2) == 1;
                        return Vars{where(odd, s[0] * 3 + 1, floor_divide(s[0], 2)), maximum(s[1], s[0]), s[2] != odd};
                      },
                      {n, n, zeros(n.tape(), {}, Dtype::boolean)}, 200);
  };
  const Looped loop = one(start);
  const Var many = tape.constant(Array(ArrayView(xt::xarray<std::int64_t>(xt::arange<std::int64_t>(1, 31)))));
  const Vars mapped = vmap(
      [&](const Vars& n) {
        const Looped looped = one(n[0]);
        return Vars{looped.steps, looped.states[1], looped.states[2], looped.states[0]};
      },
      {many});
  const std::vector<Numbers> together = values(tape, mapped, {{start, xt::xarray<std::int64_t>(1)}});
  for (std::int64_t n = 1; n <= 30; ++n) {
    CAPTURE(n);
    std::int64_t steps = 0, highest = n, odd = 0;
    for (std::int64_t k = n; k != 1; ++steps) {
      highest = std::max(highest, k);
      odd ^= k % 2;
      k = k % 2 == 1 ? 3 * k + 1 : k / 2;
    }
    const std::vector<Numbers> found = values(tape, {loop.steps, loop.states[1], loop.states[2], loop.states[0]},
                                              {{start, xt::xarray<std::int64_t>(n)}});
    const std::vector<std::int64_t> truth{steps, highest, odd, 1};
    for (std::size_t i = 0; i < truth.size(); ++i) {
      CHECK(found[i]() == static_cast<double>(truth[i]));
      CHECK(together[i](static_cast<std::size_t>(n - 1)) == static_cast<double>(truth[i]));
    }
  }
}

TEST_CASE("while_loop: gradients by states and weights, in both modes") {
  const Function loops = [](const Vars& v) {
    const Looped loop = shrunk(v[0], v[1], v[2]);
    return Vars{loop.states[0], loop.states[1]};
  };
  for (const double scale : {0.3, 1.0, 2.0}) check(loops, {Numbers{scale, -scale}, turn(0.4), Numbers{0.1, 0.02}});
  const Function derivatives = [&](const Vars& v) {
    Vars all = loops(v);
    const Var loss = sum(sin(all[0])) + all[1];
    for (const Var& gradient : grad(loss, v)) all.push_back(gradient);
    for (const Var& product : hvp(loss, v, {v[0], v[1], v[2]})) all.push_back(product);
    for (const Var& tangent : jvp({loss}, v, {v[0], v[1], v[2]})) all.push_back(tangent);
    return all;
  };
  const std::vector<Numbers> points{Numbers{1.0, -1.0}, turn(0.4), Numbers{0.1, 0.02}};
  const std::vector<Numbers> found = everywhere(derivatives, points);
  double along = 0;  // the tangent along the inputs themselves is the sum of the gradients times them
  for (std::size_t i = 0; i < points.size(); ++i) along += xt::sum(found[2 + i] * points[i])();
  CHECK(found.back()() == doctest::Approx(along));
}

TEST_CASE("while_loop: no step, and too few steps") {
  Tape tape;
  const Var x = tape.input("x", {}, Dtype::float64);
  for (const std::int64_t bound : {0, 1, 3, 4, 5}) {
    CAPTURE(bound);
    const Looped loop =
        while_loop([](const Vars& s) { return s[0] < 9; }, [](const Vars& s) { return Vars{s[0] * 2}; }, {x}, bound);
    const Var slope = grad(loop.states[0], {x})[0];
    for (const double start : {1.0, 9.0}) {
      double y = start;
      int steps = 0;
      for (; steps < bound && y < 9; ++steps) y *= 2;
      const std::vector<Numbers> found =
          values(tape, {loop.states[0], loop.steps, loop.unfinished, slope}, {{x, Numbers(start)}});
      CHECK(found[0]() == y);
      CHECK(found[1]() == steps);
      CHECK(found[2]() == (y < 9));
      CHECK(found[3]() == y / start);
    }
  }
}

TEST_CASE("loops: derivatives that are infinite where no step takes place add nothing") {
  // After the last step the state is 0, where the derivative of the square root is infinite.
  const auto roots = [](const Var& x, const Var& w) {
    return while_loop([](const Vars& s) { return s[0] > 0; },
                      [&](const Vars& s) {
                        return Vars{s[0] - 1, s[1] + sqrt(s[0] * w)};
                      },
                      {x, x * 0}, 9)
        .states[1];
  };
  Tape tape;
  const Var x = tape.input("x", {}, Dtype::float64), w = tape.input("w", {}, Dtype::float64);
  const std::vector<Feed> feeds{{x, Numbers(3.0)}, {w, Numbers(4.0)}};
  const Var y = roots(x, w);
  const Vars slopes = grad(y, {x, w});
  const std::vector<Numbers> found =
      values(tape, {y, slopes[0], slopes[1], jvp({y}, {x}, {ones_like(x)})[0], grad(slopes[0], {x})[0]}, feeds);
  const double up = 1 + 1 / std::sqrt(2.0) + 1 / std::sqrt(3.0), all = 1 + std::sqrt(2.0) + std::sqrt(3.0);
  CHECK(found[0]() == doctest::Approx(2 * all));
  CHECK(found[1]() == doctest::Approx(up));
  CHECK(found[2]() == doctest::Approx(all / 4));
  CHECK(found[3]() == doctest::Approx(up));
  CHECK(std::isfinite(found[4]()));
  const Numbers infinity(std::numeric_limits<double>::infinity());
  const std::vector<Numbers> none = values(tape, {y, slopes[0], slopes[1]}, {{x, Numbers(0.0)}, {w, infinity}});
  for (const Numbers& each : none) CHECK(each() == 0);

  // Examples that are ready wait for others at such a state.
  const Var many = tape.input("many", {3}, Dtype::float64);
  const Var four = tape.constant(4.0, Dtype::float64);
  const Var mapped = vmap([&](const Vars& v) { return Vars{roots(v[0], four)}; }, {many})[0];
  const Vars derivatives{grad(sum(mapped), {many})[0], jvp({mapped}, {many}, {ones_like(many)})[0]};
  for (const Numbers& each : values(tape, derivatives, {{many, Numbers{3.0, 0.0, 1.0}}}))
    CHECK(are_close(each, Numbers{up, 0.0, 1.0}));
}

TEST_CASE("loops: vmap takes examples with different numbers of steps") {
  const Numbers starts{{0.1, 0.1}, {2.0, -3.0}, {0.9, 0.9}, {40.0, 1.0}};
  const Function one = [](const Vars& v) {
    const Looped loop = shrunk(v[0], v[1], v[2]);
    Vars all{loop.states[0], loop.states[1], cast(loop.steps, Dtype::float64), cast(loop.unfinished, Dtype::float64)};
    for (const Var& gradient : grad(sum(square(loop.states[0])) + loop.states[1], v)) all.push_back(gradient);
    return all;
  };
  const Function inside = [&](const Vars& v) { return vmap(one, v, {.in_axes = {0, std::nullopt, std::nullopt}}); };
  const std::vector<Numbers> weights{turn(0.5), Numbers{0.1, 0.2}};
  const std::vector<Numbers> together = everywhere(inside, {starts, weights[0], weights[1]});
  std::set<double> lengths;
  Numbers summed = xt::zeros<double>({2, 2});
  for (std::size_t i = 0; i < 4; ++i) {
    const std::vector<Numbers> alone = everywhere(one, {xt::view(starts, i), weights[0], weights[1]});
    lengths.insert(alone[2]());
    summed += alone[5];
    for (std::size_t k = 0; k < alone.size(); ++k) CHECK(are_close(Numbers(xt::view(together[k], i)), alone[k]));
  }
  CHECK(lengths.size() > 2);
  CHECK(lengths.count(0) == 1);

  const Function outside = [&](const Vars& v) {  // the gradient of the mapped loop
    const Vars mapped = vmap(
        [&](const Vars& each) {
          const Looped loop = shrunk(each[0], v[1], v[2]);
          return Vars{loop.states[0], loop.states[1]};
        },
        {v[0]});
    return grad(sum(square(mapped[0])) + sum(mapped[1]), v);
  };
  const std::vector<Numbers> found = everywhere(outside, {starts, weights[0], weights[1]});
  CHECK(are_close(found[0], together[4]));
  CHECK(are_close(found[1], summed));
  const Function pair = [](const Vars& v) {
    return vmap([&](const Vars& each) { return shrunk(each[0], v[1], each[0] * 0 + 0.1).states; }, {v[0]});
  };
  check(pair, {Numbers{{0.1, 0.1}, {1.0, -0.8}}, turn(0.3)});
}

TEST_CASE("loops: inside of checkpoints, scans and loops") {
  const Function in_checkpoint = [](const Vars& v) {
    return checkpoint([](const Vars& s) { return shrunk(s[0], s[1], s[2]).states; }, v);
  };
  const Function plain = [](const Vars& v) { return shrunk(v[0], v[1], v[2]).states; };
  const std::vector<Numbers> points{Numbers{1.0, -0.9}, turn(0.4), Numbers{0.1, 0.02}};
  const auto with_gradients = [](const Function& function) -> Function {
    return [=](const Vars& v) {
      Vars all = function(v);
      for (const Var& gradient : grad(sum(all[0]) + all[1], v)) all.push_back(gradient);
      return all;
    };
  };
  const std::vector<Numbers> a = everywhere(with_gradients(in_checkpoint), points);
  const std::vector<Numbers> b = everywhere(with_gradients(plain), points);
  for (std::size_t i = 0; i < b.size(); ++i) CHECK(are_close(a[i], b[i]));

  const Function in_scan = [](const Vars& v) {  // x [t, n]
    const ScanFunction cell = [&](const Vars& x, const Vars& h) {
      const Vars out = shrunk(x[0] + h[0], v[1], v[2], 6).states;
      return std::make_pair(Vars{out[1]}, Vars{out[0]});
    };
    ScanOptions along;
    along.axis = 0;
    const Scanned result = scan(cell, {v[0]}, {v[2]}, along);
    return Vars{result.outputs[0], result.states[0]};
  };
  const Numbers rows = sines({3, 2}, 1.5);
  check(in_scan, {rows, turn(0.4), Numbers{0.1, 0.02}});
  const Numbers scanned = everywhere(in_scan, {rows, turn(0.4), Numbers{0.1, 0.02}})[1];
  Numbers state{0.1, 0.02};
  for (std::size_t i = 0; i < 3; ++i)
    state = everywhere([](const Vars& v) { return shrunk(v[0], v[1], v[2], 6).states; },
                       {xt::view(rows, i) + state, turn(0.4), Numbers{0.1, 0.02}})[0];
  CHECK(are_close(scanned, state));

  // Outer: while x < 20, x becomes the first power x, 2x, 4x … above a bound that grows with the outer steps.
  const Function nested = [](const Vars& v) {
    const Looped outer = while_loop([](const Vars& s) { return s[0] < 20; },
                                    [&](const Vars& s) {
                                      const Looped inner =
                                          while_loop([&](const Vars& t) { return t[0] < s[1]; },
                                                     [&](const Vars& t) { return Vars{t[0] * v[1]}; }, {s[0]}, 8);
                                      return Vars{inner.states[0], s[1] * 2, s[2] + cast(inner.steps, Dtype::float64)};
                                    },
                                    {v[0], v[0] * 0 + 3, v[0] * 0}, 10);
    return Vars{outer.states[0], outer.states[2]};
  };
  for (const double start : {1.1, 2.9, 25.0}) {
    double x = start, bound = 3, steps = 0;
    while (x < 20) {
      for (int i = 0; i < 8 && x < bound; ++i, ++steps) x *= 1.5;
      bound *= 2;
    }
    const std::vector<Numbers> found = everywhere(nested, {Numbers(start), Numbers(1.5)});
    CHECK(found[0]() == doctest::Approx(x));
    CHECK(found[1]() == steps);
    check(nested, {Numbers(start), Numbers(1.5)});
  }
  const Function mapped = [&](const Vars& v) { return vmap(nested, {v[0], v[1]}, {.in_axes = {0, std::nullopt}}); };
  const std::vector<Numbers> all = everywhere(mapped, {Numbers{1.1, 2.9, 25.0}, Numbers(1.5)});
  CHECK(all[1](2) == 0);
  CHECK(all[0](1) == doctest::Approx(everywhere(nested, {Numbers(2.9), Numbers(1.5)})[0]()));
}

TEST_CASE("cond: plays the branch that is taken, in gradients too") {
  Tape tape;
  const Var x = tape.input("x", {}, Dtype::float64), w = tape.input("w", {}, Dtype::float64);
  const Function logarithm = [&](const Vars& v) {
    return Vars{log(counted(v[0])) * w, cast(v[0] * 0 + 7, Dtype::int64)};
  };
  const Function square_of = [&](const Vars& v) { return Vars{v[0] * v[0], cast(v[0], Dtype::int64)}; };
  const Vars results = cond(x > 0, logarithm, square_of, {x});
  const Vars slopes = grad(results[0], {x, w});
  const Vars all{results[0], cast(results[1], Dtype::float64), slopes[0],
                 slopes[1],  grad(slopes[0], {x})[0],          jvp({results[0]}, {x}, {ones_like(x)})[0]};
  PlayerOptions options;
  options.passes.fold = false;
  Player forward(tape, {results[0]}, options), with_gradients(tape, all, options);
  const auto played = [&](double at) {
    const std::vector<Feed> feeds{{x, Numbers(at)}, {w, Numbers(3.0)}};
    CHECK(runs_of(forward, feeds) == (at > 0 ? 1 : 0));
    CHECK((runs_of(with_gradients, feeds) > 0) == (at > 0));
    std::vector<double> found;
    for (const Var& each : all) found.push_back(with_gradients.view(each).to<double>()());
    return found;
  };
  const std::vector<double> positive = played(2), negative = played(-3), zero = played(0);  // log(0) is not played
  const std::vector<double> truth{3 * std::log(2.0), 7, 1.5, std::log(2.0), -0.75, 1.5};
  for (std::size_t i = 0; i < truth.size(); ++i) CHECK(positive[i] == doctest::Approx(truth[i]));
  CHECK(negative == std::vector<double>{9, -3, -6, 0, 2, -6});
  CHECK(zero == std::vector<double>{0, 0, 0, 0, 2, 0});
}

TEST_CASE("cond: gradients, vmap, and branches that give what they get") {
  const Function either = [](const Vars& v) {
    return cond(
        sum(v[0]) > 0,
        [&](const Vars& x) {
          return Vars{tanh(matmul(v[1], x[0])), x[0]};
        },
        [&](const Vars& x) {
          return Vars{x[0], sin(x[0]) * sum(v[1])};
        },
        {v[0]});
  };
  for (const double sign : {1.0, -1.0}) check(either, {Numbers{0.7 * sign, 0.2}, turn(0.5)});
  const Numbers rows{{0.7, 0.2}, {-0.7, 0.2}, {-0.1, 0.05}};
  const Function mapped = [&](const Vars& v) { return vmap(either, v, {.in_axes = {0, std::nullopt}}); };
  const std::vector<Numbers> together = everywhere(mapped, {rows, turn(0.5)});
  for (std::size_t i = 0; i < 3; ++i) {
    const std::vector<Numbers> alone = everywhere(either, {xt::view(rows, i), turn(0.5)});
    for (std::size_t k = 0; k < 2; ++k) CHECK(are_close(Numbers(xt::view(together[k], i)), alone[k]));
  }
  check(mapped, {rows, turn(0.5)});

  // A predicate that is the same for all examples still chooses.
  Tape tape;
  const Var x = tape.input("x", {3}, Dtype::float64), flag = tape.input("flag", {1}, Dtype::boolean);
  const auto count = [](const Vars& u) { return Vars{counted(u[0])}; };
  const auto twice = [](const Vars& u) { return Vars{u[0] * 2}; };
  const Var y = vmap([&](const Vars& v) { return cond(flag, count, twice, v); }, {x})[0];
  Player player(tape, {y});
  CHECK(runs_of(player, {{x, Numbers{1, 2, 3}}, {flag, xt::xarray<bool>{false}}}) == 0);
  CHECK(player.view(y).to<double>() == Numbers{2, 4, 6});
  CHECK(runs_of(player, {{x, Numbers{1, 2, 3}}, {flag, xt::xarray<bool>{true}}}) == 1);
  CHECK(player.view(y).to<double>() == Numbers{1, 2, 3});
}
