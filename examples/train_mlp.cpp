// Trains a small network that fits a sine. A Tape records the model. A Step plays the model with its gradients and
// updates the weights.
#include <cmath>
#include <iostream>
#include <xtape/xtape.hpp>
using namespace xtape;

int main() {
  xt::xarray<float> points = xt::zeros<float>({256, 1}), sines = points;
  for (int i = 0; i < 256; ++i) sines(i, 0) = std::sin(points(i, 0) = 0.025F * static_cast<float>(i - 128));

  Tape tape;
  Parameters p(tape, 1);  // the weights; their initial values depend only on the seed and the name
  const Var x = tape.input("x", {256, 1}), y = tape.input("y", {256, 1});
  const Var found = nn::linear(p / "out", tanh(nn::linear(p / "hidden", x, 64)), 1);
  const Var loss = mse_loss(found, y);  // recorded, not computed; shapes are checked

  Step step(loss, p, AdamW{0.01});  // records gradients on the tape, and plans once
  double now = 1;
  for (int i = 0; i <= 1000; ++i) {
    now = step({{x, points}, {y, sines}});  // plays, and updates the weights; allocates nothing
    if (i % 250 == 0) std::cout << "step " << i << ", loss " << now << '\n';
  }
  return now < 1e-3 ? 0 : 1;
}
