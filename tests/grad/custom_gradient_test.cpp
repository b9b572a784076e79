// Gradients that the program gives.
#include "xtape/custom_gradient.hpp"

#include <doctest/doctest.h>

#include "xtape/derivatives.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"
#include "xtape/scan.hpp"
#include "xtape/vmap.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
using Numbers = xt::xarray<double>;
const Numbers start{0.3, -1.2, 0.8, 2.0};

/// log(1 + e^x), with the gradient in terms of e^x, which the function has recorded.
Var softplus(const Var& x) {
  Var power;
  const auto function = [&](const Vars& inputs) {
    power = exp(inputs[0]);
    return Vars{log(1 + power)};
  };
  const auto rule = [&](const Vars&, const Vars&, const Vars& cotangents) {
    return Vars{cotangents[0] * power / (1 + power)};
  };
  return custom_gradient(function, rule, {x})[0];
}
Numbers sigmoid(const Numbers& x) {
  return 1 / (1 + xt::exp(-x));
}
Numbers slope_of_sigmoid(const Numbers& x) {
  return sigmoid(x) * (1 - sigmoid(x));
}

/// x y with gradients that are no derivatives of it: 3 x y by x, and 5 cos(y) by y.
Var strange(const Var& x, const Var& y) {
  const auto rule = [](const Vars& inputs, const Vars& outputs, const Vars& cotangents) {
    return Vars{3 * outputs[0] * cotangents[0], 5 * cos(inputs[1]) * cotangents[0]};
  };
  return custom_gradient([](const Vars& inputs) { return Vars{inputs[0] * inputs[1]}; }, rule, {x, y})[0];
}
}  // namespace

TEST_CASE("the gradient is that of the rule; gradients of the gradient are those of the rule's ops") {
  Tape tape;
  const Var x = tape.input("x", {4}, Dtype::float64);
  const Var y = softplus(x);
  const auto play = [&](const Var& var) { return evaluate(var, {{x, start}}).to<double>(); };
  CHECK(xt::allclose(play(y), Numbers(xt::log(1 + xt::exp(start)))));
  const Var slope = grad(sum(y), {x})[0];
  CHECK(xt::allclose(play(slope), sigmoid(start)));
  CHECK(xt::allclose(play(grad(sum(slope), {x})[0]), slope_of_sigmoid(start)));
  CHECK(xt::allclose(play(hessian(sum(y), x)), Numbers(xt::diag(slope_of_sigmoid(start)))));
}

TEST_CASE("a rule that reads the outputs is differentiated through them") {
  Tape tape;
  const Var x = tape.input("x", {4}, Dtype::float64), y = tape.input("y", {4}, Dtype::float64);
  const Vars found = grad(sum(strange(x, y)), {x, y});
  const Numbers other{1.0, 2.0, -0.5, 0.7};
  const auto play = [&](const Var& var) { return evaluate(var, {{x, start}, {y, other}}).to<double>(); };
  CHECK(xt::allclose(play(found[0]), 3 * start * other));
  CHECK(xt::allclose(play(found[1]), 5 * xt::cos(other)));
  // By x y, the rule gives 3 x y and 5 cos(y) again.
  const Vars second = grad(sum(found[0]), {x, y});
  CHECK(xt::allclose(play(second[0]), 3 * (3 * start * other)));
  CHECK(xt::allclose(play(second[1]), 3 * (5 * xt::cos(other))));
}

TEST_CASE("jvp transposes the rule") {
  Tape tape;
  const Var x = tape.input("x", {4}, Dtype::float64), y = tape.input("y", {4}, Dtype::float64),
            v = tape.input("v", {4}, Dtype::float64);
  const Var z = strange(x, y);
  const Numbers other{1.0, 2.0, -0.5, 0.7}, along{1.0, -1.0, 0.5, 3.0};
  const auto play = [&](const Var& var) { return evaluate(var, {{x, start}, {y, other}, {v, along}}).to<double>(); };
  CHECK(xt::allclose(play(jvp({z}, {x}, {v})[0]), 3 * start * other * along));
  CHECK(xt::allclose(play(jvp({z}, {x, y}, {v, v})[0]), (3 * start * other + 5 * xt::cos(other)) * along));
  CHECK(xt::allclose(play(jacobian(z, y, {.mode = JacobianMode::forward, .chunk_size = 0})),
                     Numbers(xt::diag(Numbers(5 * xt::cos(other))))));
}

TEST_CASE("inside vmap, checkpoint and scan") {
  Tape tape;
  const Var x = tape.input("x", {4}, Dtype::float64), y = tape.input("y", {4}, Dtype::float64);
  const Numbers other{1.0, 2.0, -0.5, 0.7};
  const auto play = [&](const Var& var) { return evaluate(var, {{x, start}, {y, other}}).to<double>(); };
  const auto function = [](const Vars& given) { return Vars{strange(given[0], given[1])}; };
  const auto cell = [&](const Vars& given, const Vars&) { return std::make_pair(function(given), Vars{}); };
  ScanOptions options;
  options.axis = 0;
  const Var mapped = vmap(function, {x, y})[0], apart = checkpoint(function, {x, y})[0],
            scanned = scan(cell, {x, y}, {}, options).outputs[0];
  for (const Var& z : {mapped, apart, scanned}) {
    CHECK(xt::allclose(play(z), start * other));
    const Vars found = grad(sum(z), {x, y});
    CHECK(xt::allclose(play(found[0]), 3 * start * other));
    CHECK(xt::allclose(play(found[1]), 5 * xt::cos(other)));
    CHECK(xt::allclose(play(grad(sum(found[0]), {y})[0]), 3 * (5 * xt::cos(other))));
  }
  // Gradients per example, of which y is the same for all.
  VmapOptions axes;
  axes.in_axes = {0, std::nullopt};
  const auto slopes = [](const Vars& given) { return grad(sum(strange(given[0], given[1])), {given[0], given[1]}); };
  const Vars found = vmap(slopes, {x, reshape(slice(y, {3}, {4}), {})}, axes);
  CHECK(xt::allclose(play(found[0]), 3 * start * 0.7));
  CHECK(xt::allclose(play(found[1]), 5 * std::cos(0.7) * xt::ones<double>({4})));
}

TEST_CASE("a rule that grad writes as attention is no draw, so a scan takes it") {
  const auto attended = [](const Vars& given) {
    const Var weights = softmax(einsum("bqe,bke->bqk", Vars{given[0], given[1]}) * 0.5);
    return Vars{einsum("bqk,bkd->bqd", Vars{weights, given[1]})};
  };
  const auto rule = [&](const Vars& inputs, const Vars&, const Vars& cotangents) {
    return grad(attended(inputs), inputs, cotangents);
  };
  Tape tape;
  const Var q = tape.input("q", {3, 2, 4, 5}, Dtype::float64), k = tape.input("k", {2, 6, 5}, Dtype::float64);
  ScanOptions along;
  along.axis = 0;
  const auto summed = [&](const std::function<Vars(const Vars&)>& function) {
    const ScanFunction cell = [&](const Vars& x, const Vars&) { return std::pair(function({x[0], k}), Vars()); };
    return sum(sin(scan(cell, {q}, {}, along).outputs[0]));
  };
  const Vars by_rule = grad(summed([&](const Vars& x) { return custom_gradient(attended, rule, x); }), {q, k});
  const Vars plain = grad(summed(attended), {q, k});
  Numbers queries = xt::sin(xt::arange<double>(120)), keys = xt::cos(xt::arange<double>(60));
  queries.reshape({3, 2, 4, 5});
  keys.reshape({2, 6, 5});
  for (std::size_t i = 0; i < 2; ++i)
    CHECK(xt::allclose(evaluate(by_rule[i], {{q, queries}, {k, keys}}).to<double>(),
                       evaluate(plain[i], {{q, queries}, {k, keys}}).to<double>(), 1e-10, 1e-12));
}

TEST_CASE("integer inputs and results have no cotangents; the rule may leave out gradients") {
  Tape tape;
  const Var x = tape.input("x", {4}, Dtype::float32), n = tape.input("n", {4}, Dtype::int64),
            w = tape.input("w", {4}, Dtype::float32);
  const auto function = [](const Vars& given) { return Vars{given[1] + 1, given[0] * given[2]}; };
  const auto rule = [](const Vars& given, const Vars& values, const Vars& cotangents) {
    CHECK(cotangents[0].empty());
    return Vars{cotangents[1] * cast(values[0], Dtype::float32) + cast(given[1], Dtype::float32), Var(), Var()};
  };
  const Vars values = custom_gradient(function, rule, {x, n, w});
  CHECK(values[0].dtype() == Dtype::int64);
  const Var slope = grad(sum(values[1]), {x})[0];
  const xt::xarray<std::int64_t> count{1, 2, 3, 4};
  CHECK(evaluate(slope, {{n, count}}).to<float>() == xt::xarray<float>{3, 5, 7, 9});
  CHECK_THROWS_AS(grad(sum(values[1]), {w}), Error);
  CHECK_THROWS_AS(grad(sum(values[1]), {x, w}), Error);
}

TEST_CASE("no vjp of the function is recorded, so its ops need none") {
  Tape tape;
  const Var x = tape.input("x", {4}, Dtype::float64);
  // Straight-through: rounding has no gradient, the rule passes the cotangent.
  const auto rule = [](const Vars&, const Vars&, const Vars& cotangents) { return cotangents; };
  const Var y = custom_gradient([](const Vars& given) { return Vars{floor(given[0])}; }, rule, {x})[0];
  const auto play = [&](const Var& var) { return evaluate(var, {{x, start}}).to<double>(); };
  CHECK(play(y) == Numbers{0, -2, 0, 2});
  CHECK(play(grad(sum(square(y)), {x})[0]) == Numbers{0, -4, 0, 4});
}

TEST_CASE("mistakes are errors, and leave the tape as it was") {
  Tape tape, other;
  const Var x = tape.input("x", {4}), n = tape.input("n", {4}, Dtype::int64), far = other.input("x", {4});
  const std::size_t size = tape.size();
  const auto same = [](const Vars& given) { return given; };
  const auto pass = [](const Vars&, const Vars&, const Vars& cotangents) { return cotangents; };
  const auto giving = [](const Vars& gradients) {
    return [gradients](const Vars&, const Vars&, const Vars&) { return gradients; };
  };
  CHECK_THROWS_AS(custom_gradient({}, pass, {x}), Error);
  CHECK_THROWS_AS(custom_gradient(same, {}, {x}), Error);
  CHECK_THROWS_AS(custom_gradient(same, pass, {}), Error);
  CHECK_THROWS_AS(custom_gradient(same, pass, {x, far}), HandleError);
  CHECK_THROWS_AS(custom_gradient([](const Vars&) { return Vars{}; }, pass, {x}), Error);
  CHECK_THROWS_AS(custom_gradient([&](const Vars&) { return Vars{far}; }, pass, {x}), HandleError);
  CHECK_THROWS_AS(custom_gradient(same, giving({far}), {x}), HandleError);
  CHECK_THROWS_WITH_AS(custom_gradient(same, giving({}), {x}), doctest::Contains("one var for each of the 1 inputs"),
                       Error);
  CHECK_THROWS_WITH_AS(custom_gradient(same, giving({n}), {n}), doctest::Contains("has no gradient"), Error);
  const auto too_long = [](const Vars&, const Vars&, const Vars& cotangents) {
    return Vars{concat({cotangents[0], cotangents[0]}, 0)};
  };
  const auto noisy = [&](const Vars&, const Vars&, const Vars& cotangents) {
    return Vars{cotangents[0] * uniform(tape, {})};
  };
  const auto cell = [&](const Vars& given, const Vars&) {
    return std::make_pair(custom_gradient(same, noisy, given), Vars{});
  };
  ScanOptions along;
  along.axis = 0;
  CHECK_THROWS_WITH_AS(scan(cell, {x}, {}, along), doctest::Contains("custom_gradient draws random numbers"), Error);
  CHECK_THROWS_WITH_AS(custom_gradient(same, too_long, {x}), doctest::Contains("must be float32 (4,)"), ShapeError);
  CHECK(tape.size() == size);
}
