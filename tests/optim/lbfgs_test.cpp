// L-BFGS against torch.optim.LBFGS.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "source_root.hpp"
#include "xtape/ops.hpp"
#include "xtape/step.hpp"
#include "xtape/xtensor.hpp"

namespace lbfgs {

using namespace xtape;
using Json = nlohmann::json;

namespace {
/// Rosenbrock's function of six variables, in two arrays.
struct Valley {
  Store weights;
  explicit Valley(Dtype dtype = Dtype::float64) {
    for (const char* name : {"a", "b"}) {
      Array x = weights.add(name, Array(dtype, {3}));
      for (std::int64_t i = 0; i < 3; ++i) {
        const double value = (i + (name[0] == 'b' ? 1 : 0)) % 2 == 0 ? -1.2 : 1;
        if (dtype == Dtype::float64)
          x.as<double>()[i] = value;
        else
          x.as<float>()[i] = static_cast<float>(value);
      }
    }
  }
  Var operator()(Tape& tape) const {
    const Var x = concat({tape.parameter(weights, "a"), tape.parameter(weights, "b")}, 0);
    const Var left = slice(x, {0}, {5}), right = slice(x, {1}, {6});
    return sum(100.0 * square(right - square(left)) + square(1.0 - left));
  }
  double at(std::int64_t i) const {
    const Array& x = weights[i < 3 ? 0 : 1].value;
    return x.dtype() == Dtype::float64 ? x.as<double>()[i % 3] : static_cast<double>(x.as<float>()[i % 3]);
  }
};
}  // namespace

TEST_CASE("losses and weights of L-BFGS equal PyTorch's") {
  std::ifstream file(source_root() + "/tests/golden/data/lbfgs.json");
  REQUIRE(file.good());
  const Json cases = Json::parse(file);
  REQUIRE(cases.size() == 4);
  for (const Json& each : cases) {
    const Json& options = each.at("options");
    CAPTURE(options.dump());
    const Valley valley;
    Tape tape(Dtype::float64);
    Step step(valley(tape), valley.weights,
              Lbfgs{.rate = options.value("rate", 1.0),
                    .iterations = options.at("iterations"),
                    .plays = options.value("plays", 0),
                    .history = options.at("history"),
                    .strong_wolfe = options.at("strong_wolfe")});
    for (std::size_t i = 0; i < each.at("losses").size(); ++i) {
      const auto expected = each.at("losses")[i].get<double>();
      REQUIRE(std::abs(step({}) - expected) <= 1e-6 * (1 + std::abs(expected)));
      for (std::int64_t k = 0; k < 6; ++k)
        REQUIRE(std::abs(valley.at(k) - each.at("after")[i][static_cast<std::size_t>(k)].get<double>()) <= 1e-6);
    }
    CHECK(step.updates() == static_cast<std::int64_t>(each.at("losses").size()));
  }
}

TEST_CASE("L-BFGS continues from its state with the same bits, in float32, too") {
  for (const Dtype dtype : {Dtype::float64, Dtype::float32}) {
    const Lbfgs search{.iterations = 3, .history = 4};
    const Valley whole(dtype), stopped(dtype);
    Tape tape(dtype), other(dtype);
    Step step(whole(tape), whole.weights, search), first(stopped(other), stopped.weights, search);
    for (int i = 0; i < 8; ++i) step({});
    for (int i = 0; i < 5; ++i) first({});
    Tape third(dtype);
    Step second(stopped(third), stopped.weights, search);
    for (const Store::Entry& entry : second.state()) Array(entry.value).assign(first.state().at(entry.name));
    for (int i = 0; i < 3; ++i) second({});
    CHECK(second.updates() == 8);
    for (const Store::Entry& entry : whole.weights)
      CHECK(std::memcmp(entry.value.data(), stopped.weights.at(entry.name).data(), entry.value.bytes()) == 0);
  }
}

TEST_CASE("a function of a batch, steps and views work with L-BFGS; an error leaves the weights") {
  Store weights;
  Array w = weights.add("w", Array(Dtype::float64, {2}));
  Step step([&](Var x, Var y) { return mean(square(matmul(x, x.tape().parameter(weights, "w")) - y)); }, weights,
            Lbfgs{}, {}, Tape(Dtype::float64));
  const xt::xarray<double> x{{1, 2}, {3, 4}, {5, 7}}, y{5, 11, 19};  // w = (1, 2)
  const double first = step({x, y});
  CHECK(first == doctest::Approx((25 + 121 + 361) / 3.0));
  CHECK(w.as<double>()[0] == doctest::Approx(1).epsilon(1e-4));
  CHECK(w.as<double>()[1] == doctest::Approx(2).epsilon(1e-4));
  CHECK(step.norm() > 1);
  CHECK(step.rate() > 0);
  const double before = w.as<double>()[0];
  const xt::xarray<double> broken{{1, 2}, {3, std::nan("")}, {5, 7}};
  CHECK_THROWS_AS(step({broken, y}), UpdateError);
  CHECK(w.as<double>()[0] == before);
  CHECK(step.updates() == 1);
  step({x, y});
  CHECK(w.as<double>()[0] == doctest::Approx(1).epsilon(1e-6));
  CHECK_THROWS_WITH_AS(step.optimizer(), "Step: with L-BFGS there is no Optimizer: state() has the state", Error);
}

TEST_CASE("a loss that is infinite far away is searched nearer") {
  Store weights;
  Array w = weights.add("w", Array(Dtype::float64, {1}));
  w.as<double>()[0] = 1e-3;
  Tape tape(Dtype::float64);
  const Var x = tape.parameter(weights, "w");
  Step step(sum(x - log(x)), weights,
            Lbfgs{.rate = 10});  // the minimum is 1; the logarithm of a negative number is NaN
  for (int i = 0; i < 5; ++i) step({});
  CHECK(w.as<double>()[0] == doctest::Approx(1).epsilon(1e-5));
}

TEST_CASE("wrong options of L-BFGS are errors") {
  const Valley valley;
  Tape tape(Dtype::float64);
  const Var loss = valley(tape);
  CHECK_THROWS_WITH_AS(Step(loss, valley.weights, Lbfgs{.rate = 0}),
                       doctest::Contains("Step: L-BFGS needs a rate above 0"), Error);
  CHECK_THROWS_WITH_AS(Step(loss, valley.weights, Lbfgs{.history = 0}),
                       doctest::Contains("a history of 1 to 100,000 changes"), Error);
  StepOptions clipped;
  clipped.clip = 1;
  CHECK_THROWS_WITH_AS(Step(loss, valley.weights, Lbfgs{}, clipped), doctest::Contains("clip must be 0"), Error);
}

}  // namespace lbfgs
