// Newton's method with exact Hessians finds the minimum of Rosenbrock's function of four variables.
#include <iostream>
#include <xtape/xtape.hpp>
using namespace xtape;

int main() {
  Tape tape(Dtype::float64);
  const Var x = tape.input("x", {4}), head = x.at(Slice(0, -1)), tail = x.at(Slice(1));
  const Var f = sum(100 * square(tail - square(head)) + square(1 - head));
  const Var g = grad(f, x), norm = sqrt(sum(square(g))), next = x - linalg::solve(hessian(f, x), g);

  Player player(tape, {f, norm, next});
  std::vector<double> at = {1.3, 0.7, 0.8, 1.9};
  for (int step = 0; step < 50; ++step) {
    player.play({{x, at}});
    std::cout << "step " << step << ": f " << player.scalar(f) << ", gradient " << player.scalar(norm) << '\n';
    if (player.scalar(norm) < 1e-10) return 0;
    player.view(next).copy_to(at.data());
  }
  return 1;
}
