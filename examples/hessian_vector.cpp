// Products of the Hessian with vectors: the gradient of a gradient, since gradients are ordinary nodes of the tape.
// Newton's method on Rosenbrock's function finds its minimum, (1, 1), in a few steps.
#include <cmath>
#include <iostream>
#include <xtape/xtape.hpp>

using namespace xtape;

int main() {
  Tape tape;
  const Var p = tape.input("p", {2}, Dtype::float64);
  const Var v = tape.input("v", {2}, Dtype::float64);
  const Var x = slice(p, {0}, {1});
  const Var y = slice(p, {1}, {2});
  const Var f = sum(square(1 - x) + 100 * square(y - square(x)));
  const Var df = grad(f, {p})[0];
  const Var hv = grad(sum(df * v), {p})[0];  // H v, without H
  Player player(tape, {f, df, hv});

  xt::xarray<double> at = {-1.2, 1.0};
  for (int step = 0; step < 20; ++step) {
    xt::xarray<double> axis = {1.0, 0.0};
    player.play({{p, at}, {v, axis}});
    const xt::xarray<double> gradient = player.value<double>(df);
    const xt::xarray<double> first = player.value<double>(hv);  // the Hessian's first column
    std::cout << "step " << step << ": f(" << at(0) << ", " << at(1) << ") = " << player.scalar(f) << '\n';
    if (std::hypot(gradient(0), gradient(1)) < 1e-9) return std::hypot(at(0) - 1, at(1) - 1) < 1e-9 ? 0 : 1;

    axis = {0.0, 1.0};
    player.play({{p, at}, {v, axis}});
    const xt::xarray<double> second = player.value<double>(hv);
    const double determinant = first(0) * second(1) - first(1) * second(0);
    at(0) -= (second(1) * gradient(0) - second(0) * gradient(1)) / determinant;
    at(1) -= (first(0) * gradient(1) - first(1) * gradient(0)) / determinant;
  }
  std::cerr << "no minimum found\n";
  return 1;
}
