/// Loops for tests, and ways to play them.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "xtape/grad.hpp"
#include "xtape/gradcheck.hpp"
#include "xtape/loops.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"
#include "xtape/xtensor.hpp"

namespace xtape::test {

using Numbers = xt::xarray<double>;
using Function = std::function<Vars(const Vars&)>;

inline Numbers sines(const std::vector<std::size_t>& shape, double scale = 1) {
  Numbers found = xt::zeros<double>(shape);
  double i = 0;
  for (double& each : found) each = scale * std::sin(1.7 * ++i);
  return found;
}

inline std::vector<Numbers> values(const Tape& tape, const Vars& vars, const std::vector<Feed>& feeds = {},
                                   const PlayerOptions& options = {}) {
  Vars wide;
  for (const Var& var : vars) wide.push_back(cast(var, Dtype::float64));
  Player player(tape, wide, options);
  player.play(feeds, 3);
  std::vector<Numbers> found;
  for (const Var& var : wide) found.push_back(player.view(var).to<double>());
  return found;
}

inline bool are_close(const Numbers& a, const Numbers& b, double tolerance = 1e-12) {
  bool close = a.shape() == b.shape();
  for (std::size_t i = 0; close && i < a.size(); ++i)
    close = std::abs(a.flat(i) - b.flat(i)) <= tolerance * (1 + std::abs(b.flat(i)));
  return close;
}

/// Returns the values at the points. Checks that all ways to play give the same values.
inline std::vector<Numbers> everywhere(const Function& function, const std::vector<Numbers>& points) {
  Tape tape;
  Vars inputs;
  std::vector<Feed> feeds;
  for (const Numbers& point : points) {
    const Shape shape(point.shape().begin(), point.shape().end());
    inputs.push_back(tape.input("x" + std::to_string(inputs.size()), shape, Dtype::float64));
    feeds.emplace_back(inputs.back(), point);
  }
  const Vars outputs = function(inputs);
  PlayerOptions reference, no_views, no_reuse;
  reference.passes = Passes::reference();
  no_views.passes.views = false;
  no_reuse.passes.reuse = false;
  const std::vector<Numbers> found = values(tape, outputs, feeds);
  for (const PlayerOptions& options : {reference, no_views, no_reuse}) {
    const std::vector<Numbers> others = values(tape, outputs, feeds, options);
    for (std::size_t i = 0; i < found.size(); ++i) CHECK(are_close(others[i], found[i]));
  }
  return found;
}

inline void check(const Function& function, const std::vector<Numbers>& points) {
  for (const bool second : {false, true}) {
    GradcheckOptions options;
    options.second = second;
    const GradcheckReport report = gradcheck(function, points, options);
    CHECK_MESSAGE(report.passed, (second ? "second: " : "first: ") << report.message);
  }
}

/// Computes the root with Newton's method, starting at x itself.
inline Looped root(const Var& x) {
  return while_loop([&](const Vars& y) { return abs(square(y[0]) - x) > 1e-9; },
                    [&](const Vars& y) { return Vars{(y[0] + x / y[0]) * 0.5}; }, {x}, 60);
}
inline int steps_of_root(double x) {
  int steps = 0;
  for (double y = x; std::abs(y * y - x) > 1e-9; ++steps) y = (y + x / y) * 0.5;
  return steps;
}

/// Rotates and shrinks y [n] by w [n, n] while its length is above a bound. The number of steps differs for each y.
inline Looped shrunk(const Var& y, const Var& w, const Var& b, std::int64_t max_steps = 12) {
  return while_loop([](const Vars& s) { return sum(square(s[0])) > 0.5; },
                    [&](const Vars& s) {
                      const Var next = tanh(matmul(w, s[0]) + b) * 0.9;
                      return Vars{next, s[1] + sum(next * next)};
                    },
                    {y, sum(y) * 0}, max_steps);
}
inline Numbers turn(double angle) {
  return {{std::cos(angle), -std::sin(angle)}, {std::sin(angle), std::cos(angle)}};
}

/// The op returns x and counts its runs in `runs`.
inline int runs = 0;
inline const Op& counted_op() {
  static const Op entry = [] {
    Op op;
    op.name = "counted";
    op.doc = "x; counts its runs.";
    op.inputs = {{"x"}};
    op.shape = [](const OpCall& call) { return std::vector<ValueType>{call.inputs[0]}; };
    op.gradient = [](const GradientCall& call) { return apply(counted_op(), {call.cotangent()}); };
    op.batch = [](const BatchCall& call) { return apply(counted_op(), {call.inputs[0]}); };
    op.lowering.kernel = [](const KernelCall& call) {
      const auto bytes = static_cast<std::size_t>(count_of(call.shape(0))) * size_of(call.dtype(0));
      return Kernel{[bytes](const KernelArguments& arguments) {
        ++runs;
        std::copy_n(static_cast<const std::byte*>(arguments.in[0]), bytes, static_cast<std::byte*>(arguments.out[0]));
      }};
    };
    return op;
  }();
  return entry;
}
inline Var counted(const Var& x) {
  return apply(counted_op(), {x})[0];
}
inline int runs_of(Player& player, const std::vector<Feed>& feeds) {
  runs = 0;
  player.play(feeds);
  return runs;
}

}  // namespace xtape::test
