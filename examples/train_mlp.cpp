// Fits the sine by a network with one hidden layer: the weights are updated by AdamW at every step.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <random>
#include <xtape/xtape.hpp>
using namespace xtape;

int main() {
  xt::xarray<float> points = xt::zeros<float>({256, 1}), sines = points;
  for (int i = 0; i < 256; ++i) sines(i, 0) = std::sin(points(i, 0) = 0.025F * static_cast<float>(i - 128));

  Tape tape;
  Store weights;  // outside the tape, so that they keep their values between plays
  std::normal_distribution<float> normal(0, 0.3F);
  auto weight = [&, generator = std::mt19937(1)](const char* name, const Shape& shape) mutable {
    Array array = weights.add(name, Array(Dtype::float32, shape));
    std::generate_n(array.as<float>(), array.count(), [&] { return normal(generator); });
    return tape.parameter(weights, name);
  };
  const Var x = tape.input("x", {256, 1}), y = tape.input("y", {256, 1});
  const Var w = weight("w", {1, 64}), b = weight("b", {64}), v = weight("v", {64, 1});
  const Var loss = mean(square(matmul(tanh(matmul(x, w) + b), v) - y));  // recorded, not computed; shapes are checked
  const Vars d = grad(loss, {w, b, v});                                  // more nodes on the same tape

  Player player(tape, {loss, d[0], d[1], d[2]});  // planned once
  Optimizer adamw(weights, OptimizerOptions());
  for (int step = 0; step <= 1000; ++step) {
    player.play({{x, points}, {y, sines}});  // allocates nothing
    adamw.update({player.view(d[0]), player.view(d[1]), player.view(d[2])}, 0.01);
    if (step % 250 == 0) std::cout << "step " << step << ", loss " << player.scalar(loss) << '\n';
  }
  return player.scalar(loss) < 1e-3 ? 0 : 1;
}
