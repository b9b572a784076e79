// A user's op with rules of its own, by the public headers alone: where the rules apply, and that the values stay.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <xtape/xtape.hpp>

using namespace xtape;

namespace {
/// x * sigmoid(beta * x).
const Op& swish_op() {
  static const Op entry = [] {
    Op op;
    op.name = "swish";
    op.doc = "x * sigmoid(beta * x).";
    op.inputs = {{"x", Accept::floating, Arity::one}};
    op.attributes = {{"beta", AttributeType::number, "The slope.", 1.0}};
    op.shape = [](const OpCall& call) { return std::vector<ValueType>{call.inputs[0]}; };
    op.lowering.tile = [](const KernelCall& call) -> TileFunction {
      return [beta = call.number("beta")](const Tile& tile) {
        const auto* x = static_cast<const double*>(tile.in[0]);
        auto* y = static_cast<double*>(tile.out[0]);
        for (std::int64_t i = 0; i < tile.count; ++i) y[i] = x[i] / (1 + std::exp(-beta * x[i]));
      };
    };
    op.gradient = [](const GradientCall& call) {
      const Var& x = call.inputs[0];
      const double beta = call.number("beta");
      const Var s = sigmoid(beta * x);
      return Vars{call.cotangent() * (s + beta * x * s * (1 - s))};
    };
    op.expand = [](const ExpandCall& call) {
      return Vars{call.inputs[0] * sigmoid(call.number("beta") * call.inputs[0])};
    };
    return op;
  }();
  return entry;
}

/// The library's table with the op, a rule by its expansion, and one by a pattern of its own.
const OpTable& own_table() {
  static const OpTable table = [] {
    OpTable table = builtin_ops();
    table.add(swish_op());
    FusionRule rule;
    rule.name = "swish";
    rule.op = &swish_op();
    rule.inputs = {{Dtype::float64, {2, 3}}};
    rule.attributes = {{"beta", 0.371}};
    rule.refuses = [](const OpCall& call) { return call.number("beta") < 0 ? "beta is negative" : ""; };
    table.add(rule);
    rule.name = "swish by exp";
    rule.pattern = [](const ExpandCall& call) {
      const Var e = exp(call.number("beta") * call.inputs[0]);
      return Vars{call.inputs[0] * e / (1 + e)};
    };
    table.add(rule);
    return table;
  }();
  return table;
}

using Spelling = Var (*)(const Var& x, double beta);
Var by_sigmoid(const Var& x, double beta) {
  return sigmoid(x * beta) * x;
}
Var by_exp(const Var& x, double beta) {
  const Var e = exp(x * beta);
  return e / (e + 1) * x;
}

/// The rules that a plan has applied; of those that it has not, whether one was refused.
std::string rules_of(const Player& player) {
  std::string text;
  for (const Plan::Fusion& each : player.plan().fusions)
    if (each.miss.empty() || each.miss == "beta is negative")
      text += each.rule + (each.miss.empty() ? ";" : " is refused;");
  return text;
}
bool has_step(const Player& player) {
  for (const Plan::Step& step : player.plan().steps)
    if (("+" + step.op + "+").find("+swish+") != std::string::npos) return true;
  return false;
}

const xt::xarray<double> points{{-3.0, -0.5, 0.0, 0.7}, {9.0, 1.25, -20.0, 2.0}};

/// Plays the sum's gradient and the value, with rules and without, and compares both with loops.
std::string played(Spelling spelling, double beta, const OpTable* table, bool fused) {
  Tape tape;
  if (table != nullptr) tape.set_ops(*table);
  const Var x = tape.parameter("x", points);
  const Var y = spelling(x, beta);
  const Var gradient = grad(sum(y), {x})[0];
  PlayerOptions off;
  off.passes.fuse = false;
  Player player(tape, {y, gradient}), plain(tape, {y, gradient}, off);
  CHECK(has_step(player) == fused);
  CHECK(!has_step(plain));
  CHECK(rules_of(plain).empty());
  for (Player* each : {&player, &plain}) {
    each->play();
    const auto value = each->value<double>(y), slope = each->value<double>(gradient);
    REQUIRE(value.size() == points.size());
    REQUIRE(slope.size() == points.size());
    for (std::size_t i = 0; i < points.size(); ++i) {
      const double at = points.flat(i), s = 1 / (1 + std::exp(-beta * at));
      CAPTURE(at);
      CHECK(std::abs(value.flat(i) - at * s) < 1e-12);
      CHECK(std::abs(slope.flat(i) - (s + beta * at * s * (1 - s))) < 1e-12);
    }
  }
  return rules_of(player);
}
}  // namespace

TEST_CASE("a user's rules put the op in for either spelling, with the number that stands there") {
  CHECK(played(by_sigmoid, 1.7, &own_table(), true) == "swish;");
  CHECK(played(by_exp, 0.6, &own_table(), true) == "swish by exp;");
}

TEST_CASE("a user's rule does not apply where its condition refuses, and the plan says why") {
  CHECK(played(by_sigmoid, -1.5, &own_table(), false) == "swish is refused;");
}

TEST_CASE("a user's rule does not apply on tapes of the library's table") {
  CHECK(played(by_sigmoid, 1.7, nullptr, false) == "");
}

TEST_CASE("a user's rule does not apply where the value inside is asked for") {
  Tape tape;
  tape.set_ops(own_table());
  const Var x = tape.parameter("x", points);
  const Var inside = sigmoid(x * 1.7), y = inside * x;
  CHECK(has_step(Player(tape, {y})));
  CHECK(!has_step(Player(tape, {y, inside})));
}
