// Fits a neural ordinary differential equation (Chen et al., 2018) to 40 points of a spiral.
#include <iostream>
#include <xtape/xtape.hpp>
using namespace xtape;

int main() try {
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
  const Var prediction = odeint(slope, truth.at(0), times, options);

  Step step(mse_loss(prediction, truth), p, Adam{0.01});
  for (int i = 0; i <= 300; ++i) {
    const double loss = step({});
    if (i % 50 == 0) std::cout << "step " << i << ": loss " << loss << '\n';
  }
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
