// Equal calls that have bodies, such as scans and loops, are played once.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "xtape/grad.hpp"
#include "xtape/loops.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"
#include "xtape/scan.hpp"

using namespace xtape;

namespace {
/// Applies x -> x * rate + c three times. Each call records the constants rate and c again, so two calls capture
/// different vars with equal values.
Var repeated(const Var& x, const Literal& c, double rate = 0.5) {
  Tape tape = x.tape();
  const Var shift = tape.constant(c, Dtype::float64), factor = tape.constant(rate, Dtype::float64);
  const ScanFunction step = [&](const Vars&, const Vars& state) {
    return std::pair{Vars{}, Vars{state[0] * factor + shift}};
  };
  ScanOptions options;
  options.axis = 0;
  return scan(step, {zeros(tape, {3})}, {x}, options).states[0];
}

std::int64_t count_scans(const Player& player) {
  const auto& steps = player.plan().steps;
  return std::count_if(steps.begin(), steps.end(), [](const Plan::Step& step) { return step.op == "scan"; });
}

Player player_of(const Vars& outputs, const Passes& passes = {}) {
  PlayerOptions options;
  options.passes = passes;
  return Player(outputs[0].tape(), outputs, options);
}
}  // namespace

TEST_CASE("merging: equal scans on equal inputs are one") {
  Tape tape(Dtype::float64);
  const Var x = tape.input("x", {2});
  const Vars outputs = {repeated(x, 1), repeated(reshape(x, {2}), 1), repeated(1.0 * x + 1 - 1, 1)};
  Player player = player_of(outputs);
  CHECK(count_scans(player) == 2);  // the third input may differ by rounding
  player.play({{x, {8, 16}}});
  for (const Var& output : outputs) {
    CHECK(player.view(output).as<double>()[0] == 8 / 8.0 + 1.75);  // x / 8 + 1 / 4 + 1 / 2 + 1
    CHECK(player.view(output).as<double>()[1] == 16 / 8.0 + 1.75);
  }
}

TEST_CASE("merging: scans with different constants, captures or inputs stay apart") {
  Tape tape(Dtype::float64);
  const Var x = tape.input("x", {2}), y = tape.input("y", {2});
  Player player = player_of({repeated(x, 1), repeated(x, 2), repeated(x, 1, 0.25), repeated(y, 1)});
  CHECK(count_scans(player) == 4);
  player.play({{x, {8, 16}}, {y, {0, 0}}});
  const Vars& outputs = player.outputs();
  CHECK(player.view(outputs[0]).as<double>()[0] == 2.75);
  CHECK(player.view(outputs[1]).as<double>()[0] == 4.5);
  CHECK(player.view(outputs[2]).as<double>()[0] == 8 / 64.0 + 1 / 16.0 + 1 / 4.0 + 1);
  CHECK(player.view(outputs[3]).as<double>()[0] == 1.75);
  Player signs = player_of({1 / repeated(x, 0.0, -1), 1 / repeated(x, -0.0, -1)});  // x = 0: 0 or -0 at the end
  CHECK(count_scans(signs) == 2);
}

TEST_CASE("merging: scans with random numbers of their own stay apart") {
  Tape tape(Dtype::float64);
  const Var x = tape.input("x", {100});
  const auto dropped = [&] {
    const ScanFunction step = [](const Vars&, const Vars& state) {
      return std::pair{Vars{}, Vars{dropout(state[0], 0.5)}};
    };
    ScanOptions options;
    options.axis = 0;
    return scan(step, {zeros(tape, {2})}, {x}, options).states[0];
  };
  const Vars outputs = {dropped(), dropped()};
  Player player = player_of(outputs);
  CHECK(count_scans(player) == 2);
  player.play({{x, std::vector<double>(100, 1.0)}});
  const ArrayView first = player.view(outputs[0]), second = player.view(outputs[1]);
  CHECK_FALSE(std::equal(first.as<double>(), first.as<double>() + 100, second.as<double>()));
}

TEST_CASE("merging: a function and its gradient share the loop of a copy of the input") {
  Tape tape(Dtype::float64);
  const Var x = tape.input("x", {2});
  const auto root = [](const Var& square) {  // Newton's method, until the step is small
    const auto goes_on = [&](const Vars& s) { return max(abs(s[0] * s[0] - square)) > 1e-12; };
    const auto step = [&](const Vars& s) { return Vars{(s[0] + square / s[0]) / 2}; };
    return while_loop(goes_on, step, {square}, 30).states[0];
  };
  const Var at = reshape(x, {2});
  const Vars outputs = {root(x), grad(sum(root(at)), at)};
  Player player = player_of(outputs);
  CHECK(count_scans(player) == 2);  // the steps, and the gradient through them
  player.play({{x, {4, 9}}});
  CHECK(player.view(outputs[0]).as<double>()[1] == doctest::Approx(3));
  CHECK(player.view(outputs[1]).as<double>()[0] == doctest::Approx(0.25));  // 1 / (2 sqrt(x))
  Passes apart;
  apart.common = false;
  CHECK(count_scans(player_of(outputs, apart)) == 3);
}
