// Scans that compute values of other scans again, so that the plan keeps to PlayerOptions::memory.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>

#include "xtape/grad.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"
#include "xtape/scan.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
Array random_array(const Shape& shape, unsigned seed) {
  Array array(Dtype::float32, shape);
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> number(-0.5f, 0.5f);
  std::generate_n(array.as<float>(), array.count(), [&] { return number(generator); });
  return array;
}

/// A scan along axis 0.
Scanned along(const ScanFunction& cell, const Vars& inputs, const Vars& init, bool reverse = false) {
  ScanOptions options;
  options.axis = 0;
  options.reverse = reverse;
  return scan(cell, inputs, init, options);
}

/// A loss with the gradients of its weights and input.
struct Gradients {
  Tape tape = Tape(Mode::train);
  Var x = tape.input("x", {32, 8, 24});
  Vars weights, outputs;

  Var weight(const Shape& shape) {
    const auto number = static_cast<unsigned>(weights.size());
    weights.push_back(tape.parameter("w" + std::to_string(number), random_array(shape, number)));
    return weights.back();
  }
  void finish(const Var& loss) {
    Vars wanted = weights;
    wanted.push_back(x);
    outputs = grad(loss, wanted);
    outputs.push_back(loss);
  }
};

/// A GRU along axis 0.
Gradients gru() {
  Gradients work;
  const Var w = work.weight({24, 72}), u = work.weight({24, 72}), b = work.weight({72});
  const ScanFunction cell = [&](const Vars& in, const Vars& h) {
    const Vars gates = split(matmul(h[0], u) + b, {24, 24, 24}, 1), given = split(in[0], {24, 24, 24}, 1);
    const Var z = sigmoid(given[0] + gates[0]), r = sigmoid(given[1] + gates[1]);
    const Var next = z * h[0] + (1 - z) * tanh(given[2] + r * gates[2]);
    return std::make_pair(Vars{next}, Vars{next});
  };
  const Var states = along(cell, {matmul(work.x, w)}, {zeros(work.tape, {8, 24})}).outputs[0];
  work.finish(mean(square(states)));
  return work;
}

/// Additive attention to `keys` at every step: its tanh is much larger than the states.
Gradients attention() {
  Gradients work;
  const Var keys = work.weight({8, 40, 24}), q = work.weight({24, 24}), v = work.weight({24});
  const ScanFunction cell = [&](const Vars& in, const Vars& h) {
    const Var scores = einsum("bsu,u->bs", tanh(keys + reshape(matmul(h[0], q), {8, 1, 24})), v);
    const Var next = tanh(in[0] + einsum("bs,bsu->bu", softmax(scores), keys));
    return std::make_pair(Vars{next}, Vars{next});
  };
  const Var states = along(cell, {work.x}, {zeros(work.tape, {8, 24})}).outputs[0];
  work.finish(sum(square(states)));
  return work;
}

/// Two scans in opposite directions, the second one over the outputs of the first, with dropout in the cell.
Gradients two_directions() {
  Gradients work;
  const Var u = work.weight({24, 24}), w = work.weight({24, 24});
  const auto layer = [&](const Var& x, const Var& weight, bool reverse) {
    const ScanFunction cell = [&](const Vars& in, const Vars& h) {
      const Var next = tanh(in[0] + matmul(dropout(h[0], 0.2), weight));
      return std::make_pair(Vars{next * sigmoid(in[0])}, Vars{next});
    };
    return along(cell, {x}, {zeros(work.tape, {8, 24})}, reverse).outputs[0];
  };
  work.finish(mean(square(layer(layer(work.x, u, false), w, true))));
  return work;
}

/// A product that the forward step adds to the state, and whose tanh only the gradient reads: the sum must be rounded
/// as if nothing were computed again.
Gradients product_and_sum() {
  Gradients work;
  const Var u = work.weight({24, 24}), w = work.weight({24, 24});
  const ScanFunction cell = [&](const Vars& in, const Vars& h) {
    const Var product = matmul(in[0], u) + matmul(h[0], w);
    const Var next = sigmoid(product) * 0.5 + h[0] * tanh(product);
    return std::make_pair(Vars{exp(next) * in[0]}, Vars{next});
  };
  const Scanned scanned = along(cell, {work.x}, {zeros(work.tape, {8, 24})});
  work.finish(mean(square(scanned.outputs[0])) + sum(scanned.states[0]));
  return work;
}

std::vector<Array> played(const Gradients& work, const PlayerOptions& options, Plan* plan = nullptr) {
  Player player(work.tape, work.outputs, options);
  player.play({{work.x, random_array({32, 8, 24}, 99)}}, 5);
  if (plan != nullptr) *plan = player.plan();
  std::vector<Array> arrays;
  for (const Var& output : work.outputs) arrays.emplace_back(player.view(output));
  return arrays;
}

bool equal_bytes(const Array& a, const Array& b) {
  return a.bytes() == b.bytes() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

struct Layer {
  const char* name;
  Gradients (*make)();
  double least;  // at most this share of the arena that keeps everything
};
constexpr Layer layers[] = {{"GRU", gru, 0.9},
                            {"attention", attention, 0.5},
                            {"two directions", two_directions, 0.8},
                            {"sums", product_and_sum, 0.95}};
}  // namespace

TEST_CASE("repeated steps: all budgets give the same bits, for any number of threads") {
  for (const Layer& layer : layers) {
    CAPTURE(layer.name);
    const Gradients work = layer.make();
    PlayerOptions options;
    options.threads = 1;
    const std::vector<Array> expected = played(work, options);
    const std::vector<MemoryPoint> curve = memory_curve(work.tape, work.outputs, options);
    for (const MemoryPoint& point : curve) {
      PlayerOptions within = options;
      within.memory = point.bytes;
      Plan plan;
      const std::vector<Array> found = played(work, within, &plan);
      CHECK(plan.peak_bytes() <= point.bytes);
      for (std::size_t k = 0; k < found.size(); ++k) CHECK(equal_bytes(found[k], expected[k]));
    }
    PlayerOptions two = options;
    two.threads = 2;
    two.memory = memory_curve(work.tape, work.outputs, two).back().bytes;
    const std::vector<Array> found = played(work, two);
    for (std::size_t k = 0; k < found.size(); ++k) CHECK(equal_bytes(found[k], expected[k]));
  }
}

TEST_CASE("repeated steps: the arena of a recurrent gradient becomes small") {
  for (const Layer& layer : layers) {
    CAPTURE(layer.name);
    const Gradients work = layer.make();
    const std::vector<MemoryPoint> curve = memory_curve(work.tape, work.outputs);
    const double share = static_cast<double>(curve.back().arena_bytes) / static_cast<double>(curve.front().arena_bytes);
    CAPTURE(share);
    CHECK(share <= layer.least);
  }
}

TEST_CASE("repeated steps: in float64 gradients within a budget agree with finite differences") {
  Tape tape(Mode::train);
  const Var x = tape.input("x", {5, 2, 3}, Dtype::float64);
  const ScanFunction cell = [](const Vars& in, const Vars& h) {
    const Var next = tanh(in[0] + h[0] * sigmoid(in[0] - h[0]));
    return std::make_pair(Vars{next * next}, Vars{next});
  };
  const Var loss = sum(along(cell, {x}, {zeros(tape, {2, 3}, Dtype::float64)}).outputs[0]);
  const Var gradient = grad(loss, {x})[0];
  PlayerOptions options;
  options.threads = 1;
  options.memory = memory_curve(tape, {loss, gradient}, options).back().bytes;
  Player player(tape, {loss, gradient}, options);
  xt::xarray<double> at = xt::linspace<double>(-1.0, 1.0, 30).reshape({5, 2, 3});
  player.play({{x, Array(at)}});
  const Array found(player.view(gradient));
  for (std::size_t i = 0; i < 30; ++i) {
    constexpr double h = 1e-6;
    const auto loss_at = [&](double shift) {
      xt::xarray<double> near = at;
      near.flat(i) += shift;
      player.play({{x, Array(near)}});
      return *player.view(loss).as<double>();
    };
    CHECK(found.as<double>()[i] == doctest::Approx((loss_at(h) - loss_at(-h)) / (2 * h)).epsilon(1e-6));
  }
}
