// Sparse Hessians of many variables, in float64 on one thread: the time to find the pattern, to record the values with
// their colouring, to plan them and to play them; beside a play of the gradient.
//
// usage: sparse [VARIABLES]
#include "xtape/sparse.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "bench.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"

namespace {
using namespace xtape;
using bench::seconds;

/// sum x_i^2 + sin(x_i x_{i+1})
Var banded(const Var& x) {
  return sum(square(x)) + sum(sin(slice(x, {0}, {-1}) * slice(x, {1}, {open_end})));
}
/// sum x_i^2 x_0
Var arrow(const Var& x) {
  return sum(square(x) * slice(x, {0}, {1}));
}

double best_play(Player& player, const Var& x, const Array& at) {
  double best = 1e9;
  for (int round = 0; round < 50; ++round) {
    const double start = seconds();
    player.play({{x, at}}, 0);
    best = std::min(best, seconds() - start);
  }
  return best;
}

void measure(const char* name, const std::function<Var(const Var&)>& f, std::int64_t n) {
  Array at(Dtype::float64, {n});
  for (std::int64_t i = 0; i < n; ++i) at.as<double>()[i] = 0.5 + 1e-5 * static_cast<double>(i);
  PlayerOptions options;
  options.threads = 1;

  const double start = seconds();
  Tape tape;
  const Var x = tape.input("x", {n}, Dtype::float64), y = f(x);
  const double recorded = seconds();
  SparseOptions wanted;
  wanted.pattern = hessian_sparsity(y, x);
  const double found = seconds();
  const SparseMatrix hessian = sparse_hessian(y, x, wanted);
  const double coloured = seconds();
  Player player(tape, {hessian.values}, options);
  const double planned = seconds();
  player.play({{x, at}}, 0);
  const double played = seconds();

  double check = 0;
  for (std::size_t i = 0; i < hessian.pattern.size(); ++i)
    check += player.view(hessian.values).as<double>()[i] * static_cast<double>(1 + i % 3);
  Player slope(tape, grad(y, {x}), options);
  const double again = best_play(player, x, at), gradient = best_play(slope, x, at);
  std::printf(
      "%s: %zu elements, %lld colours; record %.2f ms, pattern %.1f ms, colours and values %.1f ms, plan %.2f ms, "
      "first play %.3f ms, again %.3f ms, gradient %.3f ms, check %.10g\n",
      name, hessian.pattern.size(), static_cast<long long>(hessian.colours), 1e3 * (recorded - start),
      1e3 * (found - recorded), 1e3 * (coloured - found), 1e3 * (planned - coloured), 1e3 * (played - planned),
      1e3 * again, 1e3 * gradient, check);
}
}  // namespace

int main(int count, char** arguments) {
  const std::int64_t n = count > 1 ? std::atoll(arguments[1]) : 10000;
  measure("banded", banded, n);
  measure("arrow", arrow, n);
}
