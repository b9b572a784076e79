// Finds the weight decay of a logistic regression with gradients of the held-out loss. The implicit function theorem
// gives the derivatives of the fitted weights.
#include <iostream>
#include <xtape/xtape.hpp>
using namespace xtape;

int main() try {
  Tape tape(Dtype::float64);
  const auto drawn = [&](const Shape& shape) { return tape.constant(evaluate(randn(tape, shape))); };
  const auto classes = [&](const Var& scores) { return cast(scores + 4 * drawn(scores.shape()) > 0, Dtype::float64); };
  const Var truth = drawn({20}), x = drawn({60, 20}), held_x = drawn({200, 20});
  const Var y = classes(matmul(x, truth)), held_y = classes(matmul(held_x, truth));

  Parameters p(tape, 1);
  const Var decay = exp(p("log_decay", {}, -6));
  const auto slope = [&](const Var& w) {
    const Var loss = binary_cross_entropy_with_logits(matmul(x, w), y) + 0.5 * decay * sum(square(w));
    return grad(loss, w);
  };
  const Var w = implicit_root(slope, zeros(tape, {20}));
  const Var held_loss = binary_cross_entropy_with_logits(matmul(held_x, w), held_y);

  Step step({held_loss, decay}, p, Sgd{5});
  for (int i = 0; i < 30; ++i) {
    const double loss = step({});
    if (i % 10 == 0) std::cout << "step " << i << ": decay " << step.view(1)() << ", held-out loss " << loss << '\n';
  }
  std::cout << "decay " << step.view(1)() << ", slope " << step.norm() << '\n';
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
