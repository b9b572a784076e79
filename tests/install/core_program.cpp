// Fits a sine by a network of one hidden layer, with the library xtape-core alone.
#include <cmath>
#include <cstdio>
#include <random>
#include <xtape/core.hpp>

using namespace xtape;

int main() {
  Array points(Dtype::float32, {64, 1}), sines(Dtype::float32, {64, 1});
  for (int i = 0; i < 64; ++i)
    sines.as<float>()[i] = std::sin(points.as<float>()[i] = 0.1F * static_cast<float>(i) - 3);
  Tape tape;
  Store weights;
  std::mt19937 generator(1);
  std::normal_distribution<float> normal(0, 0.5F);
  const auto weight = [&](const char* name, const Shape& shape) {
    Array& array = weights.add(name, Array(Dtype::float32, shape));
    for (std::int64_t i = 0; i < array.count(); ++i) array.as<float>()[i] = normal(generator);
    return tape.parameter(weights, name);
  };
  const Var x = tape.input("x", {64, 1}), y = tape.input("y", {64, 1});
  const Var w = weight("w", {1, 32}), b = weight("b", {32}), v = weight("v", {32, 1});
  const Var loss = mean(square(matmul(tanh(matmul(x, w) + b), v) - y));
  const Vars d = grad(loss, {w, b, v});
  Player player(tape, {loss, d[0], d[1], d[2]});
  Optimizer adamw(weights, OptimizerOptions());
  for (int step = 0; step < 500; ++step) {
    player.play({{x, points}, {y, sines}});
    adamw.update({player.view(d[0]), player.view(d[1]), player.view(d[2])}, 0.01);
  }
  std::printf("loss %.2g\n", player.scalar(loss));
  return player.scalar(loss) < 1e-3 ? 0 : 1;
}
