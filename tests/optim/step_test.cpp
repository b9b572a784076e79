// Training steps in one call, mini-batches and early stopping.
#include "xtape/step.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "xtape/minibatches.hpp"
#include "xtape/ops.hpp"
#include "xtape/xtensor.hpp"

namespace steps {

using namespace xtape;

namespace {
/// A linear map of three numbers, with the weights "w" and "bias".
struct Linear {
  Store weights;
  explicit Linear(double w = 0.5) {
    Array matrix = weights.add("w", Array(Dtype::float64, {3, 1}));
    std::fill_n(matrix.as<double>(), 3, w);
    weights.add("bias", Array(Dtype::float64, {1}));
  }
  Var operator()(const Var& x) const {
    Tape tape = x.tape();
    return matmul(x, tape.parameter(weights, "w")) + tape.parameter(weights, "bias");
  }
};

/// 11 rows, whose targets a linear map gives.
struct Rows {
  xt::xarray<double> x = xt::zeros<double>({11, 3}), y = xt::zeros<double>({11, 1});
  Rows() {
    for (std::size_t i = 0; i < 11; ++i) {
      for (std::size_t j = 0; j < 3; ++j) x(i, j) = std::sin(static_cast<double>((7 + j) * i + 3 * j + 1));
      y(i, 0) = x(i, 0) - 2 * x(i, 1) + 3 * x(i, 2) + 0.5;
    }
  }
};

bool same(const Store& a, const Store& b) {
  bool equal = a.size() > 0;
  for (const Store::Entry& entry : a)
    equal = equal && std::memcmp(entry.value.data(), b.at(entry.name).data(), entry.value.bytes()) == 0;
  return equal;
}
}  // namespace

TEST_CASE("a step plays loss and gradients and updates, as a player and an optimiser do") {
  const Rows rows;
  Linear by_hand, by_step, by_function;
  const AdamW adamw{.rate = 0.05, .weight_decay = 0.1};
  const auto loss_of = [](const Linear& linear, const Var& x, const Var& y) { return mean(square(linear(x) - y)); };

  Tape tape(Dtype::float64);
  const Var x = tape.input("x", {11, 3}), y = tape.input("y", {11, 1});
  const Var loss = loss_of(by_hand, x, y);
  const Vars d = grad(loss, {tape.parameter(by_hand.weights, "w"), tape.parameter(by_hand.weights, "bias")});
  Player player(tape, {loss, d[0], d[1]});
  Optimizer optimizer(by_hand.weights, adamw);

  Tape other(Dtype::float64);
  const Var u = other.input("u", {11, 3}), v = other.input("v", {11, 1});
  const Var predicted = by_step(u);
  const Var its_loss = mean(square(predicted - v));
  Step step(Vars{its_loss, predicted}, by_step.weights, adamw, {.clip = 2});
  Step function([&](Var a, Var b) { return loss_of(by_function, a, b); }, by_function.weights, adamw, {.clip = 2},
                Tape(Dtype::float64));
  CHECK_THROWS_WITH_AS(step.player(), doctest::Contains("there was no step yet"), Error);

  for (int i = 0; i < 20; ++i) {
    player.play({{x, rows.x}, {y, rows.y}});
    const double norm = optimizer.update({player.view(d[0]), player.view(d[1])}, 1, 1, 2);
    const double found = step({{u, rows.x}, {v, rows.y}});
    CHECK(found == player.scalar(loss));
    CHECK(found == function({rows.x, rows.y}));
    CHECK(step.norm() == norm);
    CHECK(step.rate() == 0.05);
    CHECK(step.updates() == i + 1);
  }
  CHECK(same(by_hand.weights, by_step.weights));
  CHECK(same(by_hand.weights, by_function.weights));
  CHECK(step.view(1).shape() == Shape{11, 1});
  CHECK(step.view(predicted)(3, 0) == step.view(1)(3, 0));
  CHECK_THROWS_WITH_AS(step.view(2), "Step: there is no result 2: the objective has 2", Error);
  CHECK(step.optimizer().state().has("first.w"));
}

TEST_CASE("groups have rates of their own, which the schedule scales") {
  const Rows rows;
  Linear linear;
  ScheduleOptions schedule{ScheduleOptions::Kind::linear};
  schedule.steps = 4;
  Step step([&](Var x, Var y) { return mean(square(linear(x) - y)); }, linear.weights,
            {{"bias", Sgd{.rate = 0.5}}, {"*", Sgd{}}}, {.schedule = schedule}, Tape(Dtype::float64));
  for (int i = 1; i <= 4; ++i) {
    const double before = linear.weights.at("bias")(0), w = linear.weights.at("w")(0, 0);
    step({rows.x, rows.y});
    const double course = rate_at(schedule, i) / schedule.rate;
    CHECK(course == doctest::Approx(1 - i / 4.0));
    CHECK(step.rate() == doctest::Approx(1e-3 * course));
    const double slope = step.player().view(step.player().outputs()[2])(0);  // after the loss and the gradient by "w"
    CHECK(linear.weights.at("bias")(0) == doctest::Approx(before - 0.5 * course * slope).epsilon(1e-12));
    if (i < 4) CHECK(linear.weights.at("w")(0, 0) != w);
  }
}

TEST_CASE("a frozen weight and one that the loss does not reach stay as they are") {
  const Rows rows;
  Linear linear;
  linear.weights.add("other", Array(Dtype::float64, {2}));
  linear.weights.at("other").as<double>()[0] = 3;
  Step step([&](Var x, Var y) { return mean(square(linear(x) - y)); }, linear.weights,
            {{"w", Frozen{}}, {"*", AdamW{.rate = 0.1, .weight_decay = 0.5, .decay_all = true}}}, {},
            Tape(Dtype::float64));
  for (int i = 0; i < 3; ++i) step({rows.x, rows.y});
  CHECK(linear.weights.at("w")(1, 0) == 0.5);
  CHECK(linear.weights.at("other")(0) == 3);
  CHECK(linear.weights.at("bias")(0) != 0);
}

TEST_CASE("mini-batches with a short last one train a function; epochs differ, and repeat by seed") {
  const Rows rows;
  Linear linear, again;
  const auto train = [&](Linear& of) {
    Step step([&](Var x, Var y) { return mean(square(of(x) - y)); }, of.weights, AdamW{.rate = 0.05}, {},
              Tape(Dtype::float64));
    auto data = batches(4, 7, rows.x, rows.y);
    CHECK(data.size() == 3);
    double loss = 0;
    for (int epoch = 0; epoch < 300; ++epoch)
      for (auto [x, y] : data) {
        CHECK((x.shape() == Shape{4, 3} || x.shape() == Shape{3, 3}));
        loss = step({x, y});
      }
    CHECK(step.updates() == 900);
    return loss;
  };
  CHECK(train(linear) < 1e-6);
  CHECK(std::abs(linear.weights.at("w")(1, 0) + 2) < 1e-2);
  train(again);
  CHECK(same(linear.weights, again.weights));
}

TEST_CASE("a number that changes from step to step is an argument") {
  Store weights;
  weights.add("w", Array(Dtype::float32, {}));
  Step step([&](Var x, Var beta) { return sum(x) * beta * x.tape().parameter(weights, "w"); }, weights, Sgd{1.0});
  const std::vector<float> x{1, 2};
  double expected = 0;
  for (const double beta : {0.0, 0.5, 2.0}) {
    CHECK(step({x, beta}) == doctest::Approx(3 * beta * expected));
    expected -= 3 * beta;
    CHECK(weights.at("w")() == doctest::Approx(expected));
  }
}

TEST_CASE("steps refuse what is not finite, and wrong arguments") {
  const Rows rows;
  Linear linear;
  const Linear before;
  Tape tape(Dtype::float64);
  const Var x = tape.input("x", {11, 3}), y = tape.input("y", {11, 1});
  Step step(mean(square(linear(x) - y)), linear.weights, AdamW{});
  xt::xarray<double> bad = rows.x;
  bad(2, 1) = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_WITH_AS(step({{x, bad}, {y, rows.y}}),
                       doctest::Contains("update 1: the loss is nan; nothing is updated"), UpdateError);
  CHECK(same(linear.weights, before.weights));
  CHECK(step.updates() == 0);
  CHECK_THROWS_WITH_AS(step({rows.x, rows.y}), doctest::Contains("takes feeds of its inputs"), Error);
  CHECK_THROWS_AS(step({{x, rows.y}, {y, rows.y}}), ShapeError);
  CHECK_THROWS_WITH_AS(Step(mean(square(x)), linear.weights, AdamW{}),
                       doctest::Contains("the loss depends on none of the weights that existed when the Step was made"),
                       Error);
  CHECK_THROWS_WITH_AS(Step(mean(square(linear(x))), linear.weights, Frozen{}),
                       doctest::Contains("all weights are frozen"), Error);
  CHECK_THROWS_AS(Step(square(linear(x)), linear.weights, AdamW{}), ShapeError);
  CHECK_THROWS_WITH_AS(Step(mean(linear(x)), linear.weights, AdamW{}, {.clip = -1}), doctest::Contains("clip"), Error);
  Step function([&](Var a) { return mean(linear(a)); }, linear.weights, Sgd{}, {}, Tape(Dtype::float64));
  CHECK_THROWS_WITH_AS(function({{x, rows.x}}), doctest::Contains("a function takes arrays"), Error);
  CHECK_THROWS_WITH_AS(function({rows.x, rows.y}), doctest::Contains("takes 1 arrays, not 2"), Error);
}

TEST_CASE("a step continues from the state of its optimiser with the same bits") {
  const Rows rows;
  Linear straight, first;
  StepOptions options;
  options.schedule = {.kind = ScheduleOptions::Kind::cosine, .warmup = 2, .steps = 9};
  options.player.seed = 4;
  const auto made = [&](Linear& of) {
    return Step([&of](Var x, Var y) { return mean(square(dropout(of(x), 0.2) - y)); }, of.weights, AdamW{.rate = 0.1},
                options, Tape(Dtype::float64));
  };
  Step whole = made(straight), before = made(first);
  for (int i = 0; i < 6; ++i) whole({rows.x, rows.y});
  for (int i = 0; i < 3; ++i) before({rows.x, rows.y});
  Step after = made(first);
  for (const Store::Entry& entry : after.optimizer().state())
    Array(entry.value).assign(before.optimizer().state().at(entry.name));
  for (int i = 0; i < 3; ++i) after({rows.x, rows.y});
  CHECK(same(straight.weights, first.weights));
  CHECK(after.rate() == whole.rate());
}

TEST_CASE("early stopping continues from its state") {
  const double losses[] = {3, 1, 2, 1.5, 4, 5};
  Store weights;
  Array w = weights.add("w", Array(Dtype::float32, {}));
  EarlyStopping first(weights, 3);
  for (int i = 0; i < 3; ++i) {
    *w.as<float>() = static_cast<float>(i);
    CHECK_FALSE(first(losses[i]));
  }
  EarlyStopping second(weights, 3);
  for (const Store::Entry& entry : second.state()) Array(entry.value).assign(first.state().at(entry.name));
  CHECK(second.best() == 1);
  *w.as<float>() = 9;
  CHECK_FALSE(second(losses[3]));
  CHECK(second(losses[4]));
  CHECK(second.best_evaluation() == 1);
  CHECK(*w.as<float>() == 1);
  const Store::Entry* best = nullptr;
  const Store state = first.state();
  for (const Store::Entry& entry : state)
    if (entry.name == "best.w") best = &entry;
  REQUIRE(best != nullptr);
  CHECK(best->value() == 1);
}

TEST_CASE("a schedule of a step has steps, not epochs") {
  Linear linear;
  StepOptions options;
  options.schedule.kind = ScheduleOptions::Kind::cosine;
  options.schedule.epochs = 3;
  CHECK_THROWS_WITH_AS(Step([&](Var x) { return mean(linear(x)); }, linear.weights, Sgd{}, options),
                       doctest::Contains("set the steps of the schedule, not its epochs"), Error);
}

TEST_CASE("early stopping restores the weights of the best evaluation") {
  Store weights;
  Array w = weights.add("w", Array(Dtype::float32, {2}));
  EarlyStopping stop(weights, 2);
  CHECK(stop.best_evaluation() == -1);
  stop.restore();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double losses[] = {nan, 3, 1, 2, 0.5, 0.5, nan, 0};
  int evaluations = 0;
  for (const double loss : losses) {
    w.as<float>()[1] = static_cast<float>(evaluations++);
    if (stop(loss)) break;
  }
  CHECK(evaluations == 7);
  CHECK(stop.best() == 0.5);
  CHECK(stop.best_evaluation() == 4);
  CHECK(w.as<float>()[1] == 4);
  EarlyStopping never(weights, 0);
  CHECK_FALSE(never(1));
  w.as<float>()[1] = 9;
  for (int i = 0; i < 5; ++i) CHECK_FALSE(never(2));
  never.restore();
  CHECK(w.as<float>()[1] == 4);
  CHECK_THROWS_WITH_AS(EarlyStopping(weights, -1), "EarlyStopping: patience must not be negative, got -1", Error);
}

}  // namespace steps
