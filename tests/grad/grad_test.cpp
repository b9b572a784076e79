// The reverse sweep.
#include "xtape/grad.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "xtape/gradcheck.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
Var scalar_input(Tape& tape, const std::string& name) {
  return tape.input(name, {}, Dtype::float64);
}

double at(const Var& var, const std::vector<std::pair<Var, double>>& points) {
  std::vector<xt::xarray<double>> values;
  for (const auto& point : points) values.push_back(xt::xarray<double>(point.second));
  std::vector<Feed> feeds;
  for (std::size_t i = 0; i < points.size(); ++i) feeds.emplace_back(points[i].first, values[i]);
  return *evaluate(var, feeds).as<double>();
}

Op with_gradient(const std::string& name, std::function<Vars(const GradientCall&)> gradient) {
  Op op;
  op.name = name;
  op.doc = "2 x.";
  op.inputs = {{"x", Accept::floating}};
  op.shape = [](const OpCall& call) { return std::vector<ValueType>{call.inputs[0]}; };
  op.expand = [](const ExpandCall& call) { return Vars{call.inputs[0] * 2.0}; };
  op.gradient = std::move(gradient);
  return op;
}
}  // namespace

TEST_CASE("the gradients of all uses of a value are summed") {
  Tape tape;
  const Var x = scalar_input(tape, "x");
  const Var y = x * x + sin(x) + x;
  CHECK(at(grad(y, {x})[0], {{x, 0.7}}) == doctest::Approx(2 * 0.7 + std::cos(0.7) + 1));
}

TEST_CASE("the terms of a gradient are added in the order of the operands, in whichever order these were recorded") {
  const auto gradient = [](bool backwards) {
    Tape tape;
    const Var x = scalar_input(tape, "x");
    const std::vector<double> factors = {1.0, 1e17, -1e17};
    Vars terms(3);
    for (std::size_t i = 0; i < 3; ++i) {
      const std::size_t k = backwards ? 2 - i : i;
      terms[k] = x * factors[k];
    }
    return at(grad(terms[0] + terms[1] + terms[2], {x})[0], {{x, 1.0}});
  };
  CHECK(gradient(false) == 1.0);  // (-1e17 + 1e17) + 1, from the last operand to the first
  CHECK(gradient(true) == 1.0);
}

TEST_CASE("an input that no gradient reaches is an error, or gets an empty var or zeros of its type by option") {
  Tape tape;
  const Var x = tape.input("x", {2}, Dtype::float64);
  const Var other = tape.input("other", {3, 2}, Dtype::float64);
  const Var stopped = tape.input("stopped", {2}, Dtype::float64);
  const Var later = sum(x * stop_gradient(stopped));
  const Var after = tape.input("after", {1}, Dtype::float64);
  const std::size_t size = tape.size();
  CHECK_THROWS_WITH_AS(grad(later, {x, other}),
                       "grad: no gradient reaches input 1 ('other', float64 (3, 2)): leave it out, or set "
                       "GradOptions::allow_unused or materialize_grads",
                       Error);
  CHECK_THROWS_AS(grad(later, {stopped}), Error);
  CHECK_THROWS_AS(grad(later, {after}), Error);
  CHECK(tape.size() == size);
  const Vars found = grad(later, {x, other, stopped, after}, {.allow_unused = true});
  CHECK(found[0].type() == x.type());
  for (std::size_t i = 1; i < found.size(); ++i) CHECK(found[i].empty());
  const Vars gradients = grad(later, {other, stopped, after}, {.materialize_grads = true});
  CHECK(gradients[0].type() == other.type());
  for (const Var& gradient : gradients)
    for (double value : value<double>(gradient)) CHECK(value == 0);
}

TEST_CASE("an input that an op without a gradient rule uses twice gets its total gradient once") {
  static const Op twin = [] {
    Op op;
    op.name = "own_product";
    op.doc = "a b.";
    op.inputs = {{"a", Accept::floating}, {"b", Accept::floating}};
    op.shape = [](const OpCall& call) { return std::vector<ValueType>{call.inputs[0]}; };
    op.expand = [](const ExpandCall& call) { return Vars{call.inputs[0] * call.inputs[1]}; };
    return op;
  }();
  Tape tape;
  const Var x = tape.parameter("x", xt::xarray<float>{3, -2});
  const Var g = grad(sum(apply(twin, {x, x})[0]), {x})[0];
  CHECK(evaluate(g).to<float>() == xt::xarray<float>{6, -4});
}

TEST_CASE("gradients by named vars have their names") {
  Tape tape;
  const Var x = scalar_input(tape, "x"), y = scalar_input(tape, "y"), z = scalar_input(tape, "z");
  const NamedVars weights{{"second", y}, {"first", x}};
  const NamedVars one = grad(x * y, weights);
  CHECK(one.names() == std::vector<std::string>{"second", "first"});
  const NamedVars several = grad(Vars{x * x, sin(y)}, weights, {y, x});
  CHECK(at(one.at("first"), {{x, 3}, {y, 5}}) == 5);
  CHECK(at(several.at("first"), {{x, 3}, {y, 5}}) == 30);
  CHECK(at(several.at("second"), {{x, 3}, {y, 5}}) == doctest::Approx(3 * std::cos(5.0)));
  CHECK_THROWS_AS(grad(x * y, NamedVars{{"z", z}}), Error);
  GradOptions unused;
  unused.allow_unused = true;
  CHECK(grad(x * y, NamedVars{{"z", z}}, unused).at("z").empty());
}

TEST_CASE("many outputs, each with its cotangent") {
  Tape tape;
  const Var x = scalar_input(tape, "x");
  const Var a = x * x;
  const Var b = exp(x);
  const Vars gradients = grad({a, b}, {x}, {tape.constant(3.0, Dtype::float64), a});
  CHECK(at(gradients[0], {{x, 1.5}}) == doctest::Approx(3 * 2 * 1.5 + 1.5 * 1.5 * std::exp(1.5)));
  CHECK(at(grad({a, a}, {x})[0], {{x, 1.5}}) == doctest::Approx(2 * 2 * 1.5));
}

TEST_CASE("an output of several elements needs a cotangent, or the option that sums them") {
  Tape tape;
  const Var x = tape.parameter("x", xt::xarray<float>{3, -2});
  const Var y = x * x, one = sum(y, {0}, true);
  const std::size_t size = tape.size();
  CHECK_THROWS_WITH_AS(grad(y, {x}),
                       "grad: an output without cotangent must have one element, got float32 (2,): take its sum or "
                       "mean, give cotangents, or set GradOptions::sum_outputs",
                       ShapeError);
  CHECK_THROWS_AS(grad({one, y}, {x}), ShapeError);
  CHECK_THROWS_AS(grad(slice(x, {0}, {0}, {1}), {x}), ShapeError);
  tape.truncate(size);
  const xt::xarray<float> slope{6, -4};
  CHECK(evaluate(grad(one, {x})[0]).to<float>() == slope);
  CHECK(evaluate(grad(y, {x}, {.sum_outputs = true})[0]).to<float>() == slope);
  CHECK(evaluate(grad({one, y}, {x}, {}, {.sum_outputs = true})[0]).to<float>() == 2 * slope);
}

TEST_CASE("gradients with respect to intermediate values and to the output itself") {
  Tape tape;
  const Var x = scalar_input(tape, "x");
  const Var h = square(x);
  const Var y = h * h + h * x;
  const Vars gradients = grad(y, {h, x, y, h});
  CHECK(at(gradients[0], {{x, 2.0}}) == doctest::Approx(2 * 4 + 2));
  CHECK(at(gradients[1], {{x, 2.0}}) == doctest::Approx(4 * 8 + 3 * 4));
  CHECK(at(gradients[2], {{x, 2.0}}) == 1);
  CHECK(gradients[3].id() == gradients[0].id());
}

TEST_CASE("derivatives of derivatives") {
  Tape tape;
  const Var x = scalar_input(tape, "x");
  Var y = square(x) * square(x);
  const double expected[] = {4 * 27, 12 * 9, 24 * 3, 24};
  for (double each : expected) {
    y = grad(y, {x})[0];
    CHECK(at(y, {{x, 3.0}}) == doctest::Approx(each));
  }
  Var t = tanh(x);
  for (int i = 0; i < 3; ++i) t = grad(t, {x})[0];
  const double u = std::tanh(0.4);
  CHECK(at(t, {{x, 0.4}}) == doctest::Approx((1 - u * u) * (6 * u * u - 2)));
}

TEST_CASE("grad refuses invalid outputs, inputs and cotangents") {
  Tape tape;
  Tape other;
  const Var x = tape.input("x", {2});
  const Var n = tape.input("n", {2}, Dtype::int32);
  const Var foreign = other.input("x", {2});
  const std::size_t size = tape.size();
  CHECK_THROWS_WITH_AS(grad(x, {n}), "grad: an input must be a float array, got int32 (2,)", DtypeError);
  CHECK_THROWS_WITH_AS(grad(n, {x}), "grad: an output must be a float array, got int32 (2,)", DtypeError);
  CHECK_THROWS_WITH_AS(grad(Vars{}, {x}), "grad: needs at least one output", Error);
  CHECK_THROWS_WITH_AS(grad({x}, {x}, {x, x}), "grad: got 2 cotangents for 1 outputs", Error);
  CHECK_THROWS_WITH_AS(grad(x, {foreign}), "grad: an input is of another tape", HandleError);
  CHECK_THROWS_WITH_AS(grad({x}, {x}, {foreign}), "grad: a cotangent is of another tape", HandleError);
  CHECK_THROWS_WITH_AS(grad({x}, {x}, {tape.var({0, 0}), Var()}), "grad: got 2 cotangents for 1 outputs", Error);
  CHECK_THROWS_AS(grad({x}, {x}, {Var()}), HandleError);
  const Var wrong = tape.input("wrong", {3});
  CHECK_THROWS_WITH_AS(grad({x}, {x}, {wrong}), "grad: cotangent 0 is float32 (3,), its output float32 (2,)",
                       ShapeError);
  CHECK(tape.size() == size + 1);
}

TEST_CASE("no gradient flows through integers and comparisons") {
  Tape tape;
  const Var x = tape.input("x", {2}, Dtype::float64);
  const Var y = sum(cast(cast(x, Dtype::int64), Dtype::float64) + cast(x > 0.5, Dtype::float64) * x);
  const xt::xarray<double> point = {0.25, 2.0};
  const xt::xarray<double> gradient = value<double>(grad(y, {x})[0], {{x, point}});
  CHECK(gradient(0) == 0);
  CHECK(gradient(1) == 1);
}

TEST_CASE("a failed grad leaves the tape unchanged") {
  static const Op late =
      with_gradient("late", [](const GradientCall& call) -> Vars { return {reshape(call.cotangent() * 2.0, {17})}; });
  static const Op wrong_type =
      with_gradient("wrong_type", [](const GradientCall& call) -> Vars { return {sum(call.cotangent())}; });
  static const Op wrong_count = with_gradient("wrong_count", [](const GradientCall& call) {
    return Vars{call.cotangent(), call.cotangent()};
  });
  for (const Op* op : {&late, &wrong_type, &wrong_count}) {
    Tape tape;
    const Var x = tape.input("x", {2});
    const Var y = sum(apply(*op, {x})[0] * 3.0);
    const std::size_t size = tape.size();
    CHECK_THROWS_AS(grad(y, {x}), Error);
    CHECK(tape.size() == size);
    grad(sum(x * x), {x});
    Tape clean;
    const Var w = clean.input("x", {2});
    sum(apply(*op, {w})[0] * 3.0);
    grad(sum(w * w), {w});
    CHECK(ones_like(w).node().site.key == ones_like(x).node().site.key);
  }
  Tape tape;
  const Var x = tape.input("x", {2});
  CHECK_THROWS_WITH_AS(grad(apply(wrong_type, {x})[0], {x}, {.sum_outputs = true}),
                       "wrong_type: its gradient rule gave float32 () for input 0, which is float32 (2,)", Error);
  CHECK_THROWS_WITH_AS(grad(apply(wrong_count, {x})[0], {x}, {.sum_outputs = true}),
                       "wrong_count: its gradient rule gave 2 vars for 1 inputs", Error);
}

TEST_CASE("the gradient of a chain of 100,000 nodes") {
  Tape tape;
  const Var x = tape.input("x", {3}, Dtype::float64);
  const Var factor = scalar_input(tape, "factor");
  Var y = x;
  Var z = x;
  for (int i = 0; i < 25000; ++i) y = y * factor + 0.00001;
  for (int i = 0; i < 25000; ++i) z = z * 0.99999 + 0.00001;  // its gradient depends on constants only
  const Var loss = sum(y) + sum(z);
  const Var dx = grad(loss, {x})[0];
  CHECK(tape.size() > 200000);
  Player player(tape, {loss, dx});
  const xt::xarray<double> point = {1.0, 2.0, 3.0};
  const xt::xarray<double> shrinking(0.99999);
  player.play({{x, point}, {factor, shrinking}});
  const double slope = std::pow(0.99999, 25000);
  CHECK(player.scalar(loss) == doctest::Approx(2 * (3 + slope * 3)));
  for (double each : player.value<double>(dx)) CHECK(each == doctest::Approx(2 * slope));
}

TEST_CASE("gradcheck finds a wrong gradient") {
  static const Op right = with_gradient("right", [](const GradientCall& call) { return Vars{call.cotangent() * 2.0}; });
  static const Op wrong =
      with_gradient("wrong", [](const GradientCall& call) { return Vars{call.cotangent() * 2.01}; });
  static const Op broken =
      with_gradient("broken", [](const GradientCall& call) { return Vars{call.cotangent() / (call.inputs[0] * 0.0)}; });
  const std::vector<xt::xarray<double>> points = {{0.5, -1.25, 3.0}};
  const auto calling = [](const Op& op) { return [&op](const Vars& in) { return apply(op, {in[0]}); }; };
  CHECK(gradcheck(calling(right), points).passed);
  const GradcheckReport report = gradcheck(calling(wrong), points);
  CHECK_FALSE(report.passed);
  CHECK(report.worst > 1e-4);
  CHECK(report.message.find("input 0, element") == 0);
  CHECK_FALSE(gradcheck(calling(broken), points).passed);  // NaN
  const auto squared_wrongly = [](const Vars& in) { return Vars{square(apply(wrong, {in[0]})[0])}; };
  GradcheckOptions second;
  second.second = true;
  CHECK_FALSE(gradcheck(squared_wrongly, points, second).passed);
  CHECK(gradcheck([](const Vars& in) { return Vars{exp(in[0]) * sin(in[0])}; }, points, second).passed);
}
