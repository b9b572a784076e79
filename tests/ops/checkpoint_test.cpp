// Gradients through checkpoints have the same bits and need less memory.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <string>

#include "xtape/grad.hpp"
#include "xtape/gradcheck.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
using Block = std::function<Vars(const Vars&)>;

Vars plainly(const Block& block, const Vars& inputs) {
  return block(inputs);
}

using Apply = Vars (*)(const Block&, const Vars&);

struct Net {
  Tape tape;
  Var x;
  Vars outputs;
};

/// Layers with dropout, noise and a weight each. Gives the loss and all gradients.
Net net(int layers, std::int64_t width, Apply call) {
  Net result;
  result.x = result.tape.input("x", {8, width});
  Var h = result.x;
  Vars wanted = {h};
  for (int layer = 0; layer < layers; ++layer) {
    Array initial(Dtype::float32, {width});
    for (std::int64_t i = 0; i < width; ++i) initial.as<float>()[i] = 0.5f + 0.01f * static_cast<float>(i % 7);
    const Var w = result.tape.parameter("w" + std::to_string(layer), initial);
    wanted.push_back(w);
    const auto block = [&](const Vars& in) -> Vars {
      const Var noise = uniform(result.tape, in[0].shape(), -0.1, 0.1);
      const Var kept = dropout(tanh(in[0] * w + noise), 0.25);
      return {kept + sigmoid(sum(kept, {-1}, true)) * square(kept)};
    };
    h = call(block, {h})[0];
  }
  const Var loss = mean(square(h));
  result.outputs = grad(loss, wanted);
  result.outputs.push_back(loss);
  return result;
}

std::vector<Array> played(const Net& net, const Passes& passes, int threads) {
  PlayerOptions options;
  options.passes = passes;
  options.threads = threads;
  options.seed = 11;
  Player player(net.tape, net.outputs, options);
  Array x(Dtype::float32, net.x.shape());
  for (std::int64_t i = 0; i < x.count(); ++i) x.as<float>()[i] = 0.01f * static_cast<float>(i % 83) - 0.4f;
  player.play({{net.x, x}}, 5);
  std::vector<Array> values;
  for (const Var& output : net.outputs) values.emplace_back(player.view(output));
  return values;
}

void check_same_bits(const std::vector<Array>& a, const std::vector<Array>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    REQUIRE(a[i].bytes() == b[i].bytes());
    CHECK(std::memcmp(a[i].data(), b[i].data(), a[i].bytes()) == 0);
  }
}

Vars once(const Block& block, const Vars& inputs) {
  return checkpoint(block, inputs);
}

Vars twice_nested(const Block& block, const Vars& inputs) {
  return checkpoint([&](const Vars& in) { return checkpoint(block, in); }, inputs);
}
}  // namespace

TEST_CASE("values and gradients have the same bits with and without a checkpoint, dropout included") {
  const Net plain = net(3, 37, plainly);
  const Net kept = net(3, 37, once);
  const Net nested = net(3, 37, twice_nested);
  for (const Passes& passes : {Passes(), Passes::reference()}) {
    const auto truth = played(plain, passes, 1);
    check_same_bits(played(kept, passes, 1), truth);
    check_same_bits(played(kept, passes, 3), truth);
    check_same_bits(played(nested, passes, 2), truth);
  }
}

TEST_CASE("a deep net plans less memory with checkpoints") {
  const Net plain = net(24, 2048, plainly);
  const Net kept = net(24, 2048, once);
  const std::size_t without = Player(plain.tape, plain.outputs).plan().arena_bytes;
  const std::size_t with = Player(kept.tape, kept.outputs).plan().arena_bytes;
  CAPTURE(without);
  CAPTURE(with);
  CHECK(with < without * 2 / 3);
}

TEST_CASE("second derivatives through a checkpoint") {
  const auto function = [](const Vars& in) {
    return checkpoint([](const Vars& v) { return Vars{tanh(v[0]) * v[1], sin(v[0] * v[1])}; }, in);
  };
  const std::vector<xt::xarray<double>> points = {{0.3, -0.8, 1.1}, {0.5, 0.25, -2.0}};
  CHECK(gradcheck(function, points).passed);
  GradcheckOptions second;
  second.second = true;
  const GradcheckReport report = gradcheck(function, points, second);
  INFO(report.message);
  CHECK(report.passed);
  const auto nested = [&](const Vars& in) {
    return checkpoint([&](const Vars& v) { return Vars{square(function(v)[0]), v[1]}; }, in);
  };
  CHECK(gradcheck(nested, points, second).passed);
}

TEST_CASE("a checkpoint with one used result, and one that returns its input") {
  Tape tape;
  const Var x = tape.input("x", {2}, Dtype::float64);
  const Vars results = checkpoint([](const Vars& in) { return Vars{in[0], exp(in[0]), in[0] > 0.0}; }, {x});
  CHECK(results[2].dtype() == Dtype::boolean);
  const Var dx = grad(sum(results[0] * 3.0), {x})[0];
  const Var both = grad(sum(results[0] * results[1]), {x})[0];
  const xt::xarray<double> point = {0.0, 1.0};
  CHECK(value<double>(dx, {{x, point}})(1) == 3.0);
  CHECK(value<double>(both, {{x, point}})(1) == doctest::Approx(2 * std::exp(1.0)));
}

TEST_CASE("outside vars that a checkpoint uses have gradients too") {
  Tape tape;
  const Var x = tape.input("x", {}, Dtype::float64);
  const Var outside = square(x);
  const Var y = checkpoint([&](const Vars& in) { return Vars{in[0] * outside}; }, {x})[0];
  const Var dx = grad(y, {x})[0];
  const xt::xarray<double> point(2.0);
  CHECK(value<double>(dx, {{x, point}})() == doctest::Approx(12));
}
