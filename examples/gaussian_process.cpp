// Gaussian process regression. The length, scale and noise of the kernel maximise the marginal likelihood.
#include <cmath>
#include <iostream>
#include <xtape/xtape.hpp>
using namespace xtape;

int main() try {
  constexpr int n = 60;
  Tape tape(Dtype::float64);
  const Var x = tape.constant(evaluate(uniform(tape, {n}, 0, 10)));
  const Array measured = evaluate(sin(x) + 0.2 * randn(tape, {n}));
  const Var y = tape.constant(measured).at(all, nullptr);  // [n, 1]: `nullptr` adds an axis, as None in NumPy

  Parameters p(tape, 1);
  const Var length = exp(p("length", {}, 0)), scale = exp(p("scale", {}, 0)), noise = exp(p("noise", {}, 0));
  const auto kernel = [&](const Var& a, const Var& b) {
    return square(scale) * exp(-0.5 * square((a.at(all, nullptr) - b) / length));
  };
  const Var factor = linalg::cholesky(kernel(x, x) + square(noise) * eye(tape, n));
  const Var alpha = linalg::cholesky_solve(factor, y);
  const Var loss = 0.5 * sum(y * alpha) + sum(log(diagonal(factor, 0, 1))) + 0.5 * n * std::log(2 * M_PI);

  Step step({loss, noise}, p, Adam{0.1});
  for (int i = 0; i < 99; ++i) step({});
  std::cout << "-log likelihood " << step({}) << ", noise " << step.view(1)() << '\n';

  const Var points = linspace(tape, 0, 10, 11), across = kernel(points, x);
  const Var mean = matmul(across, alpha).at(all, 0), v = linalg::triangular_solve(factor, transpose(across));
  const Var deviation = sqrt(square(scale) - sum(square(v), 0));
  const Array table = evaluate(stack({points, mean, deviation, sin(points)}, 1));
  std::cout << "x, prediction, its deviation, sine:\n";
  for (int i = 0; i < 11; ++i)
    std::cout << table(i, 0) << "  " << table(i, 1) << "  " << table(i, 2) << "  " << table(i, 3) << '\n';
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
