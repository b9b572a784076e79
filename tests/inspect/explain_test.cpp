// The gradient of a loss is followed to a value, and what cuts it is named.
#include <doctest/doctest.h>

#include <cmath>

#include "xtape/inspect.hpp"
#include "xtape/xtape.hpp"

using namespace xtape;

TEST_CASE("explain: parts of the gradient, the way to the loss, and its norms") {
  Tape tape;
  const Var w = tape.parameter("w", xt::xarray<float>{1, 2, 3});
  const Var twice = w * 2, half = w * 0.5;
  const Var loss = sum(twice * twice) + sum(half);  // dw = 8 w + 0.5
  const std::size_t size = tape.size();
  const GradientFlow flow = explain_gradient({tape, {loss}, {}, {}}, w);
  CHECK(tape.size() == size);
  CHECK(flow.name == "w");
  CHECK(flow.norm == doctest::Approx(std::sqrt(8.5 * 8.5 + 16.5 * 16.5 + 24.5 * 24.5)));
  REQUIRE(flow.uses.size() == 2);
  CHECK(flow.uses[0].norm == doctest::Approx(8 * std::sqrt(14.0)));
  CHECK(flow.uses[1].norm == doctest::Approx(0.5 * std::sqrt(3.0)));
  REQUIRE(flow.path.size() == 4);
  CHECK(flow.path[0].node == "#2 mul");
  CHECK(flow.path[0].norm == doctest::Approx(4 * std::sqrt(14.0)));
  CHECK(flow.path.back().norm == 1);
  CHECK(flow.cuts.empty());
}

TEST_CASE("explain: a part is of one use alone, also if other operands of the call depend on the value") {
  Tape tape;
  const Var w = tape.parameter("w", xt::xarray<float>{1, 2, 3, 4});
  const Var x = tape.constant(xt::xarray<float>{0.1F, 0.1F, 0.1F, 0.1F});
  const Var loss = sum(w + exp(w) * x);  // a residual connection: the part of + is 1, that of exp 0.1 exp(w)
  const GradientFlow flow = explain_gradient({tape, {loss}, {}, {}}, w);
  REQUIRE(flow.uses.size() == 2);
  const double of_exp = 0.1 * std::sqrt(std::exp(2.0) + std::exp(4.0) + std::exp(6.0) + std::exp(8.0));
  CHECK(flow.uses[0].node == "#2 exp");
  CHECK(flow.uses[0].norm == doctest::Approx(of_exp).epsilon(1e-5));
  CHECK(flow.uses[1].node == "#4 add");
  CHECK(flow.uses[1].norm == doctest::Approx(2));
  CHECK(flow.path[0].node == "#2 exp");

  const Var square_of = sum(w * w);  // both operands are the value
  const GradientFlow both = explain_gradient({tape, {square_of}, {}, {}}, w);
  REQUIRE(both.uses.size() == 1);
  CHECK(both.uses[0].norm == doctest::Approx(2 * std::sqrt(30.0)));
}

TEST_CASE("explain: cuts by ops without gradient, dead and saturated functions") {
  Tape tape;
  const Var w = tape.parameter("w", xt::xarray<float>{-1, -2, -3});
  const Var stopped = stop_gradient(w), chosen = cast(argmax(w), Dtype::float32);
  const Var dead = relu(w), saturated = tanh(w * 8), masked = masked_fill(w, w < 0, 0);
  const Var loss = sum(stopped) + chosen + sum(dead) + sum(saturated) + sum(masked) + sum(w) * 1e-3;
  const GradientFlow flow = explain_gradient({tape, {loss}, {}, {}}, w);
  CHECK(flow.norm == doctest::Approx(1e-3 * std::sqrt(3.0)));
  const auto why = [&](const std::string& op) {
    for (const FlowCut& cut : flow.cuts)
      if (cut.node.find(' ' + op) != std::string::npos) return cut.why;
    return std::string();
  };
  CHECK(why("stop_gradient") == "stop_gradient passes no gradient on");
  CHECK(why("argmax") == "argmax passes no gradient on");
  CHECK(why("relu") == "its gradient is not 0, but all that it passes on is 0");
  CHECK(why("tanh") == "it passes on less than a millionth of its gradient");
  CHECK(why("masked_fill") == "its gradient is not 0, but all that it passes on is 0");
  CHECK(why("sum").empty());
}

TEST_CASE("explain: weights without gradient, and what it refuses") {
  Tape tape;
  const Var w = tape.parameter("w", xt::xarray<float>{1, 2, 3}), u = tape.parameter("u", xt::xarray<float>{1, 2, 3}),
            v = tape.parameter("v", xt::xarray<float>{1, 2, 3});
  const Var unused = v * 2, loss = sum(w * stop_gradient(u));
  CHECK(parameters_without_gradient({tape, {loss}, {}, {}}) == std::vector<std::string>{"u", "v"});
  CHECK(explain_gradient({tape, {loss}, {}, {}}, u).norm == 0);
  CHECK_THROWS_WITH_AS(explain_gradient({tape, {unused}, {}, {}}, w),
                       "a gradient needs a floating scalar as the first output, not float32 (3,)", Error);
  Tape other;
  CHECK_THROWS_AS(explain_gradient({tape, {loss}, {}, {}}, other.input("x", {})), HandleError);
}

TEST_CASE("explain: a cast to integers passes no gradient on, and ends no explanation") {
  Tape tape;
  const Var w = tape.parameter("w", xt::xarray<float>{1, 2, 3}), v = tape.parameter("v", xt::xarray<float>{1, 2, 3});
  const Var table = tape.parameter("table", xt::xarray<float>{1, 2, 3, 4});
  const Var rounded = cast(w, Dtype::int64), rows = cast(v, Dtype::int32);
  const Var loss = sum(w * 2) + sum(cast(rounded, Dtype::float32)) + sum(take(table, rows, 0));
  const GradientFlow flow = explain_gradient({tape, {loss}, {}, {}}, w);
  CHECK(flow.norm == doctest::Approx(2 * std::sqrt(3.0)));
  REQUIRE(flow.cuts.size() == 1);
  CHECK(flow.cuts[0].why == "cast to int64 passes no gradient on");
  const GradientFlow none = explain_gradient({tape, {loss}, {}, {}}, v);
  CHECK(none.norm == 0);
  CHECK(none.path.empty());
  REQUIRE(none.cuts.size() == 1);
  CHECK(none.cuts[0].why == "cast to int32 passes no gradient on");
  CHECK(parameters_without_gradient({tape, {loss}, {}, {}}) == std::vector<std::string>{"v"});
}

TEST_CASE("explain: weights whose gradient is all zeros are listed, and not those without one") {
  Tape tape;
  const Var w = tape.parameter("w", xt::xarray<float>{1, 2, 3}),
            dead = tape.parameter("dead", xt::xarray<float>{-1, -2}),
            tiny = tape.parameter("tiny", xt::xarray<float>{1}), out = tape.parameter("out", xt::xarray<float>{1});
  tape.parameter("unused", xt::xarray<float>{1});
  const Var x = tape.input("x", {3});
  const Var loss = sum(w * x) + sum(relu(dead)) + sum(tiny * 1e-30) + sum(stop_gradient(out));
  const std::size_t size = tape.size();
  RecordedPlay play{tape, {loss}, {}, {}};
  play.inputs.add("x", Array(xt::xarray<float>{0, 0, 1}));
  CHECK(parameters_with_zero_gradient(play) == std::vector<std::string>{"dead"});
  play.inputs.set("x", Array(xt::xarray<float>{0, 0, 0}));
  CHECK(parameters_with_zero_gradient(play) == std::vector<std::string>{"w", "dead"});
  CHECK(tape.size() == size);
}
