// Fits a sine by a small network. A Tape records the network, and a Step trains it.
#include <iostream>
#include <xtape/xtape.hpp>
using namespace xtape;

int main() try {
  xt::xarray<float> points = xt::linspace<float>(-3, 3, 256);
  points.reshape({256, 1});
  const xt::xarray<float> sines = xt::sin(points);

  Tape tape;
  Parameters p(tape, 1);  // the weights; their initial values depend only on the seed and the name
  const Var x = tape.input("x", {256, 1}), y = tape.input("y", {256, 1});
  const Var prediction = nn::linear(p / "out", tanh(nn::linear(p / "hidden", x, 64)), 1);

  Step step(mse_loss(prediction, y), p, AdamW{0.005});  // records the gradients, and plans once
  for (int i = 0; i <= 1000; ++i) {
    const double loss = step({{x, points}, {y, sines}});  // allocates nothing
    if (i % 250 == 0) std::cout << "step " << i << ": loss " << loss << '\n';
  }
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
