// Fits a neural ordinary differential equation (Chen et al., 2018) to a spiral. The training data are points of the
// spiral at some times.
#include <iostream>
#include <xtape/xtape.hpp>
using namespace xtape;

int main() {
  Tape tape;
  const Var times = linspace(tape, 0, 5, 40), radius = 2 * exp(-0.1 * times);
  const Var truth = stack({radius * cos(2 * times), -radius * sin(2 * times)}, 1);  // [times, 2]

  Parameters p(tape, 1);
  const auto slope = [&](const Var& y, const Var&) {
    return nn::linear(p / "out", tanh(nn::linear(p / "hidden", y, 32)), 2);
  };
  OdeOptions options;
  options.rtol = 1e-4;
  options.atol = 1e-5;
  const Var loss = mse_loss(odeint(slope, truth.at(0), times, options), truth);

  Step step(loss, p, Adam{0.01});
  double found = 0;
  for (int i = 0; i < 300; ++i) {
    found = step({});
    if (i % 50 == 0) std::cout << "step " << i << ": loss " << found << '\n';
  }
  return found < 0.05 ? 0 : 1;
}
