// Computes Hessian-vector products as the gradient of a gradient. This works because gradients are ordinary nodes of
// the tape. Newton's method uses these products to find the minimum (1, 1) of Rosenbrock's function in a few steps.
#include <cmath>
#include <iostream>
#include <xtape/xtape.hpp>

using namespace xtape;

int main() {
  Tape tape;
  const Var x = tape.input("x", {}, Dtype::float64);
  const Var y = tape.input("y", {}, Dtype::float64);
  const Var vx = tape.input("vx", {}, Dtype::float64);
  const Var vy = tape.input("vy", {}, Dtype::float64);
  const Var f = square(1 - x) + 100 * square(y - square(x));
  const Vars df = grad(f, {x, y});
  const Vars hv = grad(df[0] * vx + df[1] * vy, {x, y});  // H v, without computing H
  Player player(tape, {f, df[0], df[1], hv[0], hv[1]});

  double at[] = {-1.2, 1.0};
  const auto play = [&](double first, double second) {
    const xt::xarray<double> px = at[0];
    const xt::xarray<double> py = at[1];
    const xt::xarray<double> pvx = first;
    const xt::xarray<double> pvy = second;
    player.play({{x, px}, {y, py}, {vx, pvx}, {vy, pvy}});
  };
  for (int step = 0; step < 20; ++step) {
    play(1, 0);
    const double gradient[] = {player.scalar(df[0]), player.scalar(df[1])};
    const double first[] = {player.scalar(hv[0]), player.scalar(hv[1])};  // the Hessian's first column
    std::cout << "step " << step << ": f(" << at[0] << ", " << at[1] << ") = " << player.scalar(f) << '\n';
    if (std::hypot(gradient[0], gradient[1]) < 1e-9) return std::hypot(at[0] - 1, at[1] - 1) < 1e-9 ? 0 : 1;

    play(0, 1);
    const double second[] = {player.scalar(hv[0]), player.scalar(hv[1])};
    const double determinant = first[0] * second[1] - first[1] * second[0];
    at[0] -= (second[1] * gradient[0] - second[0] * gradient[1]) / determinant;
    at[1] -= (first[0] * gradient[1] - first[1] * gradient[0]) / determinant;
  }
  std::cerr << "no minimum found\n";
  return 1;
}
