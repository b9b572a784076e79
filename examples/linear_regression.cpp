// Fits y = x w + b by gradient descent. Records once, differentiates once, and plays many times.
#include <iostream>
#include <random>
#include <xtape/xtape.hpp>

using namespace xtape;

int main() {
  // Data: 256 points on a known plane, with noise.
  const std::vector<float> slope = {1.5F, -2.0F, 0.5F};
  const float offset = 0.25F;
  std::mt19937 generator(1);
  std::normal_distribution<float> normal;
  xt::xarray<float> points = xt::zeros<float>({256, 3});
  xt::xarray<float> labels = xt::zeros<float>({256, 1});
  for (int i = 0; i < 256; ++i) {
    labels(i, 0) = offset + 0.01F * normal(generator);
    for (int j = 0; j < 3; ++j) {
      points(i, j) = normal(generator);
      labels(i, 0) += slope[static_cast<std::size_t>(j)] * points(i, j);
    }
  }

  // The weights are in a store outside the tape. The player reads them at every play.
  Store store;
  Array weight = store.add("weight", Array(Dtype::float32, {3, 1}));
  Array bias = store.add("bias", Array(Dtype::float32, {1}));

  Tape tape;
  const Var x = tape.input("x", {256, 3});
  const Var y = tape.input("y", {256, 1});
  const Var w = tape.parameter(store, "weight");
  const Var b = tape.parameter(store, "bias");
  const Var loss = mean(square(matmul(x, w) + b - y));
  const Vars gradients = grad(loss, {w, b});  // more nodes on the same tape

  Player player(tape, {loss, gradients[0], gradients[1]});
  for (int step = 0; step < 200; ++step) {
    player.play({{x, points}, {y, labels}});
    const float* dw = player.view(gradients[0]).as<float>();
    for (int j = 0; j < 3; ++j) weight.as<float>()[j] -= 0.1F * dw[j];
    bias.as<float>()[0] -= 0.1F * player.view(gradients[1]).as<float>()[0];
    if (step % 50 == 0) std::cout << "step " << step << " loss " << player.scalar(loss) << '\n';
  }
  std::cout << "loss " << player.scalar(loss) << ", weight " << weight.as<float>()[0] << ' ' << weight.as<float>()[1]
            << ' ' << weight.as<float>()[2] << ", bias " << bias.as<float>()[0] << '\n';
  return player.scalar(loss) < 1e-3 ? 0 : 1;
}
