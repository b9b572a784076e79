// Gaussian process regression. The length, scale and noise of the kernel maximise the marginal likelihood.
#include <cmath>
#include <iostream>
#include <xtape/xtape.hpp>
using namespace xtape;

int main() {
  constexpr int n = 60;
  Tape tape(Dtype::float64);
  const Var x = tape.constant(evaluate(uniform(tape, {n}, 0, 10)));
  const Var y = tape.constant(evaluate(sin(x) + 0.2 * randn(tape, {n}))).at(all, nullptr);  // [n, 1]

  Parameters p(tape, 1);
  const Var length = exp(p("length", {}, 0)), scale = exp(p("scale", {}, 0)), noise = exp(p("noise", {}, 0));
  const auto kernel = [&](const Var& a, const Var& b) {
    return square(scale) * exp(-0.5 * square((a.at(all, nullptr) - b) / length));
  };
  const Var factor = linalg::cholesky(kernel(x, x) + square(noise) * eye(tape, n)), alpha = linalg::cholesky_solve(factor, y);
  const Var loss = 0.5 * sum(y * alpha) + sum(log(diagonal(factor, 0, 1))) + 0.5 * n * std::log(2 * M_PI);

  Step step({loss, noise}, p, Adam{0.1});
  for (int i = 0; i < 99; ++i) step({});
  std::cout << "-log likelihood " << step({}) << ", noise " << step.view(1)() << '\n';

  const Var at = linspace(tape, 0, 10, 11), across = kernel(at, x);
  const Var mean = matmul(across, alpha).at(all, 0), v = linalg::triangular_solve(factor, transpose(across));
  const Var deviation = sqrt(square(scale) - sum(square(v), 0));
  const Array found = evaluate(stack({at, mean, deviation, sin(at)}, 1));
  double worst = 0;
  for (int i = 0; i < 11; ++i) {
    std::cout << "x " << found(i, 0) << ": " << found(i, 1) << " +- " << found(i, 2) << ", sine " << found(i, 3) << '\n';
    worst = std::max(worst, std::abs(found(i, 1) - found(i, 3)));
  }
  return worst < 0.3 ? 0 : 1;
}
