// The log marginal likelihood of a Gaussian process and its gradient for three hyper-parameters, in float64.
// gaussian_process.py computes the same with PyTorch.
//
// usage: gaussian_process [POINTS] [THREADS]
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numbers>

#include "bench.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"
#include "xtape/ops/linear_algebra.hpp"
#include "xtape/player.hpp"

using namespace xtape;

int main(int argc, char** argv) {
  const std::int64_t n = argc > 1 ? std::atoll(argv[1]) : 1000;
  PlayerOptions options;
  options.threads = argc > 2 ? std::atoi(argv[2]) : 1;
  Array points(Dtype::float64, {n}), values(Dtype::float64, {n}), start(Dtype::float64, {3});
  for (std::int64_t i = 0; i < n; ++i) {
    points.as<double>()[i] = 10.0 * static_cast<double>(i) / static_cast<double>(n);
    values.as<double>()[i] = std::sin(points.as<double>()[i]) + 0.1 * std::cos(37.0 * static_cast<double>(i));
  }
  std::copy_n(std::array{0.0, 0.0, -2.0}.data(), 3, start.as<double>());

  Tape tape;
  const Var x = tape.constant(points), y = tape.constant(values),
            parameters = tape.input("parameters", {3}, Dtype::float64);
  const Vars logs = unstack(exp(parameters));  // length scale, variance, variance of the noise
  const Var distances = square((expand_dims(x, 1) - expand_dims(x, 0)) / logs[0]);
  const Var k = logs[1] * exp(-0.5 * distances) + logs[2] * eye(tape, n, n, Dtype::float64);
  const Var l = linalg::cholesky(k);
  const Var whitened = linalg::triangular_solve(l, expand_dims(y, 1));
  const Var likelihood = -0.5 * sum(square(whitened)) - sum(log(diagonal(l, 0, 1))) -
                         0.5 * static_cast<double>(n) * std::log(2 * std::numbers::pi);
  const Var gradient = grad(likelihood, {parameters})[0];
  Player player(tape, {likelihood, gradient}, options);
  double best = 1e9;
  for (int round = 0; round < 10; ++round) {
    const double begin = bench::seconds();
    player.play({{parameters, start}}, 0);
    best = std::min(best, bench::seconds() - begin);
  }
  const double* found = player.view(gradient).as<double>();
  std::printf("xtape, %lld points, %d threads: %.1f ms; log likelihood %.6f, gradient %.6f %.6f %.6f\n",
              static_cast<long long>(n), options.threads, best * 1e3, player.view(likelihood).as<double>()[0], found[0],
              found[1], found[2]);
}
