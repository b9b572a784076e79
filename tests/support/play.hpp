/// Short helpers for tests of ops.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "gradients.hpp"
#include "xtape/grad.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"
#include "xtape/xtensor.hpp"

namespace xtape {

/// Returns the values of `vars` from one play.
inline std::vector<Array> values_of(const Vars& vars, const PlayerOptions& options, std::uint64_t step = 0) {
  Player player(vars[0].tape(), vars, options);
  player.play({}, step);
  std::vector<Array> values;
  for (const Var& var : vars) values.emplace_back(player.view(var));
  return values;
}

/// Returns the values of `vars`, played together on `threads` threads with every optimisation except constant folding.
inline std::vector<Array> fast(const Vars& vars, int threads = 2, std::uint64_t step = 0, std::uint64_t seed = 0) {
  PlayerOptions options;
  options.threads = threads;
  options.seed = seed;
  options.passes.fold = false;  // folding may use another computation for values that depend only on constants
  return values_of(vars, options, step);
}
inline Array fast(const Var& var, int threads = 2, std::uint64_t step = 0, std::uint64_t seed = 0) {
  return fast(Vars{var}, threads, step, seed)[0];
}

/// Returns `function` of arrays of T, computed by the kernels.
template <class T>
Array played_on(const std::function<Var(const Vars&)>& function, const std::vector<xt::xarray<T>>& points) {
  Tape tape;
  Vars inputs;
  for (const auto& point : points)
    inputs.push_back(tape.parameter("x" + std::to_string(inputs.size()), ArrayView(point)));
  return fast(function(inputs));
}

/// Returns an array of one axis.
template <class T>
xt::xarray<T> listed(std::initializer_list<T> values) {
  xt::xarray<T> array = xt::xarray<T>::from_shape({values.size()});
  std::copy(values.begin(), values.end(), array.begin());
  return array;
}

/// Returns `function` of one-dimensional arrays, computed by the kernels.
template <class T>
Array played(const std::function<Var(const Vars&)>& function, std::initializer_list<std::initializer_list<T>> points) {
  std::vector<xt::xarray<T>> arrays;
  for (const auto& point : points) arrays.push_back(listed(point));
  return played_on(function, arrays);
}

/// Like check_gradients, for a function of one array.
inline void check_gradients_on(const std::function<Var(const Var&)>& function, const xt::xarray<double>& point,
                               bool second = true) {
  check_gradients([&](const Vars& x) { return Vars{function(x[0])}; }, std::vector<xt::xarray<double>>{point}, second);
}
inline void check_gradients_at(const std::function<Var(const Var&)>& function, std::initializer_list<double> point) {
  check_gradients_on(function, listed(point));
}

/// Returns whether |a - b| <= tolerance * (1 + |b|), or both are the same infinity, or both are NaN.
inline bool close(double a, double b, double tolerance) {
  if (a == b || (a != a && b != b)) return true;
  return std::isfinite(b) && std::abs(a - b) <= tolerance * (1 + std::abs(b));
}

}  // namespace xtape
