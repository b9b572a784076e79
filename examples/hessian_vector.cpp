// Newton's method without a Hessian: a logistic regression with 1000 weights. Conjugate gradients find each direction
// from products of the Hessian and a vector. The Hessian itself, of a million elements, is never computed.
#include <iostream>
#include <xtape/xtape.hpp>
using namespace xtape;

int main() try {
  Tape tape(Dtype::float64);
  const Var x = tape.constant(evaluate(randn(tape, {500, 1000})));
  const Var y = cast(tape.constant(evaluate(randn(tape, {500}))) > 0, Dtype::float64);  // 0 or 1

  const Var w = tape.input("w", {1000});
  const Var loss = binary_cross_entropy_with_logits(matmul(x, w), y) + 0.01 * sum(square(w));
  const Var gradient = grad(loss, w), norm = sqrt(sum(square(gradient)));
  LinearSolveOptions options;
  options.positive_definite = true;
  const auto product = [&](const Var& v) { return hvp(loss, {w}, {v})[0]; };
  const Var next = w - linear_solve(product, gradient, options);

  Player player(tape, {loss, norm, next});
  xt::xarray<double> weights = xt::zeros<double>({1000});
  for (int i = 0; i < 8; ++i) {
    player.play({{w, weights}});
    std::cout << "iteration " << i << ": loss " << player.scalar(loss) << ", gradient " << player.scalar(norm) << '\n';
    weights = player.tensor<double>(next);
  }
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
