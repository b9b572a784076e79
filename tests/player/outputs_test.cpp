// Outputs that become final during a play, and outputs in memory of the caller.
#include <doctest/doctest.h>

#include <algorithm>

#include "xtape/grad.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
/// A chain of products with its gradients by all weights, one of which is the gradient of two.
struct Chain {
  Tape tape;
  Var x = tape.input("x", {4, 8});
  Vars weights;
  Var loss;
  Vars gradients;

  Chain() {
    Var y = x;
    for (int i = 0; i < 3; ++i) {
      Array weight(Dtype::float32, {8, 8});
      for (std::int64_t k = 0; k < 64; ++k) weight.as<float>()[k] = static_cast<float>((k * 7 + i) % 11 - 5) / 20;
      weights.push_back(tape.parameter("w" + std::to_string(i), weight));
      y = tanh(matmul(y, weights.back()));
    }
    for (const char* name : {"a", "b"}) weights.push_back(tape.parameter(name, Array(Dtype::float32, {4, 8})));
    loss = sum(exp(y + (weights[3] + weights[4])));
    gradients = grad(loss, weights);
  }
  Vars outputs() const {
    Vars all = gradients;
    all.push_back(loss);
    return all;
  }
};
}  // namespace

TEST_CASE("outputs are final after their step, the later weights first") {
  const Chain chain;
  Player player(chain.tape, chain.outputs());
  const xt::xarray<float> x = xt::ones<float>({4, 8}) * 0.3F;
  player.play({{chain.x, x}});
  const std::vector<std::int64_t> steps = player.final_steps(chain.gradients);
  CHECK(steps[2] < steps[1]);
  CHECK(steps[1] < steps[0]);
  CHECK(steps[0] < static_cast<std::int64_t>(player.plan().steps.size()));
  std::vector<Array> expected;
  for (const Var& gradient : chain.gradients) expected.emplace_back(player.view(gradient));
  for (const Var& gradient : chain.gradients)
    std::fill_n(const_cast<float*>(player.view(gradient).as<float>()), count_of(gradient.shape()), -1.0F);
  std::int64_t calls = 0;
  std::size_t found = 0;
  player.play({{chain.x, x}}, 0, [&](std::int64_t step) {
    CHECK(step == calls++);
    for (std::size_t i = 0; i < steps.size(); ++i)
      if (steps[i] == step) {
        ++found;
        CHECK(Array(player.view(chain.gradients[i])).to<float>() == expected[i].to<float>());
      }
  });
  CHECK(calls == static_cast<std::int64_t>(player.plan().steps.size()));
  CHECK(found == steps.size());
}

TEST_CASE("outputs move to other memory, and earlier results stay") {
  const Chain chain;
  Player player(chain.tape, chain.outputs());
  const auto played = [&](float value) {
    const xt::xarray<float> x = xt::ones<float>({4, 8}) * value;
    player.play({{chain.x, x}});
    std::vector<xt::xarray<float>> values;
    for (const Var& gradient : chain.gradients) values.push_back(player.value<float>(gradient));
    return values;
  };
  const auto expected = played(0.5F);
  std::vector<Array> first, second;
  for (const Var& gradient : chain.gradients) {
    first.emplace_back(Dtype::float32, gradient.shape());
    second.emplace_back(Dtype::float32, gradient.shape());
  }
  const std::vector<bool> moved = player.move_outputs(chain.gradients, first);
  CHECK(moved[0]);
  CHECK(moved[1]);
  CHECK(moved[2]);
  CHECK(!moved[3]);  // both are one value, and neither can have it alone
  CHECK(!moved[4]);
  CHECK(played(0.5F) == expected);
  player.move_outputs(chain.gradients, second);
  const auto other = played(0.1F);
  CHECK(other[0] != expected[0]);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(first[i].to<float>() == expected[i]);
    CHECK(second[i].to<float>() == other[i]);
  }
  CHECK_THROWS_AS(player.move_outputs({chain.gradients[0]}, {}), Error);
  CHECK_THROWS_AS(player.move_outputs({chain.gradients[0]}, {Array(Dtype::float32, {64})}), ShapeError);
  CHECK_THROWS_AS(player.move_outputs({chain.gradients[0]}, {Array(Dtype::float64, {8, 8})}), DtypeError);
  CHECK_THROWS_AS(player.move_outputs({chain.x}, {Array(Dtype::float32, {4, 8})}), Error);
}
