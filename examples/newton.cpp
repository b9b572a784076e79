// Newton's method with exact Hessians finds the minimum of Rosenbrock's function of four variables.
#include <iostream>
#include <xtape/xtape.hpp>
using namespace xtape;

int main() try {
  Tape tape(Dtype::float64);
  const Var x = tape.input("x", {4}), head = x.at(Slice(0, -1)), tail = x.at(Slice(1));
  const Var f = sum(100 * square(tail - square(head)) + square(1 - head));
  const Var g = grad(f, x), norm = sqrt(sum(square(g))), next = x - linalg::solve(hessian(f, x), g);

  Player player(tape, {f, norm, next});
  std::vector<double> point = {1.3, 0.7, 0.8, 1.9};
  for (int i = 0; i < 50; ++i) {
    player.play({{x, point}});
    std::cout << "iteration " << i << ": f " << player.scalar(f) << ", gradient " << player.scalar(norm) << '\n';
    if (player.scalar(norm) < 1e-10) break;
    player.view(next).copy_to(point.data());
  }
  std::cout << "minimum at " << point[0] << ' ' << point[1] << ' ' << point[2] << ' ' << point[3] << '\n';
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
