// Rules across forward and backward: where they apply, where they must not, and that values do not change.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "expansion.hpp"
#include "fused.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"
#include "xtape/scan.hpp"
#include "xtape/xtensor.hpp"

namespace rules {

using namespace xtape;

namespace {
constexpr double infinity = std::numeric_limits<double>::infinity();

/// An rms_norm, written in simpler ops. The interior value `scale` is 1 / rms.
struct Recorded {
  explicit Recorded(const OpTable& table = builtin_ops()) {
    tape.set_ops(table);
    x = tape.parameter("x", normal_array({4, 6}, 1));
    w = tape.parameter("w", normal_array({6}, 2));
    scale = rsqrt(mean(square(x), {-1}, true) + 1e-5);
    y = x * scale * w;
  }
  Tape tape;
  Var x, w, scale, y;
};

Count fused(const Tape& tape, const Vars& outputs) {
  return fused("rms_norm", tape, outputs);
}

/// The notes of a plan on a rule: "rule at #12 mul" or "rule at #12 mul: reason of the miss".
std::string notes(const Tape& tape, const Vars& outputs, const std::string& rule) {
  std::string text;
  const Player player(tape, outputs);
  for (const Plan::Fusion& fusion : player.plan().fusions)
    if (fusion.rule.find(rule) == 0)
      text += (text.empty() ? "" : "; ") + fusion.place + (fusion.miss.empty() ? "" : ": " + fusion.miss);
  return text;
}
}  // namespace

TEST_CASE("a rule applies forward and backward, and both share one call") {
  Recorded r;
  CHECK(fused(r.tape, {r.y}) == Count{1, 0});
  const Var loss = sum(square(r.y));
  const Vars gradients = grad(loss, {r.x, r.w});
  CHECK(fused(r.tape, {loss, gradients[0], gradients[1]}) == Count{1, 1});
  CHECK(fused(r.tape, {r.y, gradients[0], loss}) == Count{1, 1});
  CHECK(fused(r.tape, {gradients[1]}) == Count{1, 1});
}

TEST_CASE("a rule applies at two places, separately") {
  Recorded r;
  const Var second = r.y + r.x;
  const Var z = second / sqrt(mean(square(second), {-1}, true) + 1e-6);
  const Var loss = sum(sin(z));
  const Vars gradients = grad(loss, {r.x, r.w});
  CHECK(fused(r.tape, {loss, gradients[0], gradients[1]}) == Count{2, 2});
}

TEST_CASE(
    "if a value inside is an output, read elsewhere or differentiated for, no rule applies, and nothing is computed "
    "twice") {
  Recorded r;
  const Var loss = sum(square(r.y));
  const Vars gradients = grad(loss, {r.x, r.w});
  CHECK(fused(r.tape, {r.y, r.scale}) == Count{0, 0});
  CHECK(fused(r.tape, {r.y, sum(r.scale)}) == Count{0, 0});
  CHECK(fused(r.tape, {r.y, r.scale, gradients[0], gradients[1]}) == Count{0, 0});
  Player player(r.tape, {r.y, r.scale, gradients[0], gradients[1]});
  std::int64_t roots = 0;
  for (const Plan::Step& step : player.plan().steps) roots += step.op.find("rsqrt") != std::string::npos;
  CHECK(roots == 1);
  CHECK(fused(r.tape, grad(loss, {r.x, r.scale})) == Count{0, 0});
  CHECK(notes(r.tape, {r.y, r.scale}, "rms_norm") == "#8 mul: #6 rsqrt is read elsewhere too");
  Tape other;  // the notes have the node numbers of the caller's tape
  tanh(other.parameter("unused", normal_array({2}, 1)));
  const Var x = other.parameter("x", normal_array({4, 6}, 1));
  const Var scale = rsqrt(mean(square(x), {-1}, true) + 1e-5);
  CHECK(notes(other, {x * scale, scale}, "rms_norm") == "#8 mul: #7 rsqrt is read elsewhere too");
}

TEST_CASE("a rule applies with any number of gradient sweeps") {
  Recorded r;
  const Var a = grad(sum(square(r.y)), {r.x})[0];
  const Var b = grad(sum(sin(r.y)), {r.x})[0];
  CHECK(fused(r.tape, {a}) == Count{1, 1});
  CHECK(fused(r.tape, {a, b}) == Count{1, 2});
  CHECK(fused(r.tape, {r.y, a, b}) == Count{1, 2});
}

TEST_CASE("a cotangent may be any value, also one inside the fused ops") {
  Recorded r;
  const Var cotangent = broadcast_to(r.scale, r.y.shape());
  const Var dx = grad(Vars{r.y}, {r.x}, {cotangent})[0];
  fused(r.tape, {dx});
  fused(r.tape, {r.y, dx});
}

TEST_CASE("second derivatives through fused gradients are right") {
  Recorded r;
  const Var dx = grad(sum(square(r.y)), {r.x})[0];
  const Var second = grad(sum(square(dx)), {r.w})[0];
  fused(r.tape, {second});
  fused(r.tape, {r.y, dx, second});
}

TEST_CASE("the printed tape marks calls that grad fused") {
  Recorded r;
  grad(sum(r.y), {r.x});
  std::ostringstream text;
  text << r.tape;
  CHECK(text.str().find("  fused") != std::string::npos);
  std::int64_t marked = 0;
  for (std::size_t i = 0; i < r.tape.size(); ++i)
    if (r.tape.node(i).fused) ++marked;
  CHECK(marked == 2);
}

TEST_CASE("no rule applies to ops that only look similar, and the plan gives the reason") {
  Tape tape;
  const Var x = tape.parameter("x", normal_array({2, 3, 4}, 1)), w = tape.parameter("w", normal_array({4}, 2));
  const Var other = tape.parameter("other", normal_array({2, 3, 4}, 3));
  const auto norm = [&](const Var& of, const Var& by) { return of * rsqrt(mean(square(by), {-1}, true) + 1e-6) * w; };
  CHECK(fused(tape, {norm(x, other)}) == Count{0, 0});
  CHECK(fused(tape, {x * rsqrt(mean(square(x), {-2}, true) + 1e-6)}) == Count{0, 0});
  CHECK(fused(tape, {x * sqrt(mean(square(x), {-1}, true) + 1e-6)}) == Count{0, 0});
  CHECK(fused(tape, {x * rsqrt(sum(square(x), {-1}, true) + 1e-6)}) == Count{0, 0});
  const Var gelu = 0.5 * x * (1 + tanh(0.8 * (x + 0.044715 * x * x * x)));
  CHECK(notes(tape, {gelu}, "gelu by tanh") ==
        "#" + std::to_string(gelu.id().node) + " mul: it has 0.8 where the rule has 0.79788456080286541");
  const Var q = tape.parameter("q", normal_array({2, 3, 4}, 1)), k = tape.parameter("k", normal_array({2, 5, 4}, 2));
  const Var hidden = tape.constant(xt::xarray<bool>{true, false, false, true, false});
  const auto attend = [&](double filled) {
    return einsum("bqk,bkd->bqd", softmax(masked_fill(einsum("bqd,bkd->bqk", q, k) / 2.0, hidden, filled)), k);
  };
  const Var good = attend(-infinity), near = attend(-1e9);
  CHECK(notes(tape, {good}, "attention") == "#" + std::to_string(good.id().node) + " einsum");
  CHECK(notes(tape, {near}, "attention") ==
        "#" + std::to_string(near.id().node) + " einsum: masked_fill's value is not -inf");
}

TEST_CASE("a tape's own table determines which rules apply") {
  static const OpTable without_rules = [] {
    OpTable table;
    for (const auto& row : builtin_ops().ops()) table.add(*row.second);
    return table;
  }();
  Recorded r(without_rules);
  const Vars gradients = grad(sum(square(r.y)), {r.x, r.w});
  CHECK(fused(r.tape, {r.y, gradients[0]}) == Count{0, 0});
}

TEST_CASE("a user's op replaces the ops that its expand records, with its own gradient") {
  static const Op energy = [] {
    Op op;
    op.name = "energy";
    op.doc = "sum(square(x * w)).";
    op.inputs = {{"x", Accept::floating}, {"w", Accept::floating}};
    op.shape = [](const OpCall& call) { return std::vector<ValueType>{{call.dtype(0), {}}}; };
    op.lowering.kernel = [](const KernelCall& call) {
      return Kernel{[count = count_of(call.shape(0))](const KernelArguments& arguments) {
        const auto *x = static_cast<const double*>(arguments.in[0]), *w = static_cast<const double*>(arguments.in[1]);
        double total = 0;
        for (std::int64_t i = 0; i < count; ++i) total += x[i] * w[i] * x[i] * w[i];
        *static_cast<double*>(arguments.out[0]) = total;
      }};
    };
    op.gradient = [](const GradientCall& call) {
      const Var &x = call.inputs[0], &w = call.inputs[1], g = call.cotangent() * 2.0;
      return Vars{g * x * square(w), g * w * square(x)};
    };
    op.expand = [](const ExpandCall& call) { return Vars{sum(square(call.inputs[0] * call.inputs[1]))}; };
    return op;
  }();
  static const OpTable table = [] {
    OpTable table = builtin_ops();
    table.add(energy);
    table.add({.name = "energy", .op = &energy, .inputs = {{Dtype::float64, {2, 3}}, {Dtype::float64, {2, 3}}}});
    return table;
  }();
  Tape tape;
  tape.set_ops(table);
  const Var x = tape.parameter("x", normal_array({2, 3}, 1)), w = tape.parameter("w", normal_array({2, 3}, 2));
  const Var product = w * x;
  const Var y = sum(product * product);
  const Vars gradients = grad(y, {x, w});
  CHECK(fused("energy", tape, {y, gradients[0], gradients[1]}, 1e-13) == Count{1, 0});
}

TEST_CASE("a rule is refused if its op is not in the table or it has no pattern") {
  OpTable table;
  Op op;
  op.name = "own";
  CHECK_THROWS_WITH_AS(table.add(FusionRule{.name = "r", .op = &op}), "rule 'r' is of an op that is not in the table",
                       Error);
  op.doc = "An op.";
  op.inputs = {{"x"}};
  op.shape = [](const OpCall& call) { return std::vector<ValueType>{{call.dtype(0), call.shape(0)}}; };
  op.lowering.kernel = [](const KernelCall&) { return Kernel{}; };
  table.add(op);
  const Op* own = table.find("own");
  CHECK_THROWS_WITH_AS(table.add(FusionRule{.name = "r", .op = own}),
                       "rule 'r' needs a pattern: op 'own' has no expand", Error);
  const auto itself = [](const ExpandCall& call) { return Vars{call.inputs[0]}; };
  CHECK_THROWS_WITH_AS(table.add(FusionRule{.name = "r", .op = own, .pattern = itself}),
                       "rule 'r' needs a sample of inputs", Error);
}

TEST_CASE("a rule whose pattern records no call, or cannot be recorded, gives an error when it is first tried") {
  const auto message = [](const std::function<Vars(const ExpandCall&)>& pattern) -> std::string {
    OpTable table = builtin_ops();
    table.add({.name = "r", .op = table.find("tanh"), .inputs = {{Dtype::float64, {3}}}, .pattern = pattern});
    Tape tape;
    tape.set_ops(table);
    try {
      Player(tape, {exp(tape.parameter("x", normal_array({3}, 1)))});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(message([](const ExpandCall& call) { return Vars{call.inputs[0]}; }) ==
        "rule 'r': its pattern records no call for its first output");
  CHECK(message([](const ExpandCall&) { return Vars{}; }) == "rule 'r': its pattern gives nothing");
  CHECK(message([](const ExpandCall& call) {
          return Vars{reshape(call.inputs[0], {4})};
        }).find("rule 'r': its pattern cannot be recorded on its sample: rules_test.cpp, line ") == 0);
}

TEST_CASE("rules apply inside checkpoints, whose gradient computes them again") {
  Tape tape;
  const Var x = tape.parameter("x", normal_array({4, 6}, 1)), w = tape.parameter("w", normal_array({6}, 2));
  const Var y = checkpoint(
      [&](const Vars& in) { return Vars{in[0] * rsqrt(mean(square(in[0]), {-1}, true) + 1e-5) * w}; }, {x})[0];
  const Vars gradients = grad(sum(sin(y)), {x, w});
  CHECK(fused(tape, {y}) == Count{1, 0});
  CHECK(fused(tape, {y, gradients[0], gradients[1]}) == Count{2, 1});
}

TEST_CASE("rules apply inside checkpoints to values from outside") {
  Tape tape;
  const Var x = tanh(tape.parameter("x", normal_array({4, 6}, 1))), w = sin(tape.parameter("w", normal_array({6}, 2)));
  const auto body = [&](const Vars& in) { return Vars{in[0] * rsqrt(mean(square(in[0]), {-1}, true) + 1e-5) * w}; };
  const Var y = checkpoint(body, {x})[0];
  CHECK(fused(tape, {y}) == Count{1, 0});
  CHECK(fused(tape, {y, grad(sum(sin(y)), {x})[0]}) == Count{2, 1});
}

TEST_CASE("rules apply inside the step of a scan, forward and backward") {
  Tape tape;
  const Var x = tape.parameter("x", normal_array({5, 4, 6}, 1)), w = tape.parameter("w", normal_array({6}, 2));
  const Var start = tape.parameter("h", normal_array({4, 6}, 3));
  const auto cell = [&](const Var& input, const Var& state) {
    const Var sum_of = state * 0.5 + input;
    return sum_of * rsqrt(mean(square(sum_of), {-1}, true) + 1e-5) * w;
  };
  const ScanFunction step = [&](const Vars& inputs, const Vars& states) -> std::pair<Vars, Vars> {
    const Var next = cell(inputs[0], states[0]);
    return {{next}, {next}};
  };
  ScanOptions options;
  options.axis = 0;
  const Scanned scanned = scan(step, {x}, {start}, options);
  Vars unrolled;
  for (const Var& input : unstack(x, 0)) unrolled.push_back(cell(input, unrolled.empty() ? start : unrolled.back()));
  const Var by_scan = sum(sin(scanned.outputs[0])), by_hand = sum(sin(stack(unrolled, 0)));
  std::ostringstream text;
  text << tape;
  CHECK(text.str().find("rms_norm") != std::string::npos);
  Vars outputs{by_scan, by_hand};
  for (const Var& loss : {by_scan, by_hand})
    for (const Var& gradient : grad(loss, {x, w, start})) outputs.push_back(gradient);
  Player player(tape, outputs);
  player.play();
  for (std::size_t k : {0, 2, 3, 4}) {
    const auto of_scan = player.value<double>(outputs[k]), of_hand = player.value<double>(outputs[k == 0 ? 1 : k + 3]);
    for (std::size_t i = 0; i < of_scan.size(); ++i) CHECK(close(of_scan.data()[i], of_hand.data()[i], 1e-12));
  }
}

namespace {
Var gelu_of(const Var& x, const Var& inside) {
  return 0.5 * x * (1.0 + erf(inside * M_SQRT1_2));
}

/// How many rules apply.
std::int64_t agreed(const Tape& tape, const Vars& outputs) {
  const Player player = played_with_rules(tape, outputs, "gelu", 1e-10);
  const auto& fusions = player.plan().fusions;
  return std::count_if(fusions.begin(), fusions.end(), [](const Plan::Fusion& fusion) { return fusion.miss.empty(); });
}
}  // namespace

TEST_CASE("values that are equal except for rounding are not treated as equal") {
  Tape tape;
  const Var x = tape.parameter("x", normal_array({4, 6}, 1));
  const Var rounded = (x + 6755399441055744.0) - 6755399441055744.0;
  CHECK(agreed(tape, {gelu_of(rounded, rounded)}) == 1);
  CHECK(agreed(tape, {gelu_of(rounded, x)}) == 0);
  const Var a = tape.parameter("a", xt::xarray<double>{1e20}), b = tape.parameter("b", xt::xarray<double>{-1e20}),
            c = tape.parameter("c", xt::xarray<double>{1.0});
  const Var first = (a + b) + c, second = a + (b + c);  // their values are 1 and 0
  CHECK(agreed(tape, {gelu_of(second, second), sin(first)}) == 1);
  CHECK(agreed(tape, {gelu_of(second, first)}) == 0);
  const Var infinite = tape.parameter("i", xt::xarray<double>{infinity, 2.0});
  agreed(tape, {gelu_of((infinite - infinite) + infinite, infinite)});
  agreed(tape, {gelu_of(infinite * 0.0 + infinite, infinite)});
}

TEST_CASE("roots and their squares are not simplified") {
  Tape tape;
  const Var x = tape.parameter("x", normal_array({4, 6}, 1)), w = tape.parameter("w", normal_array({6}, 2));
  const Var root = sqrt(x), scale = rsqrt(mean(square(x), {-1}, true) + 1e-6);
  agreed(tape, {root * root * scale});
  agreed(tape, {x * scale * square(sqrt(w))});
}

TEST_CASE("literals that leave the range of the dtype are not merged") {
  Tape tape;
  const Var x = tape.parameter("x", normal_array({3}, 1));
  const Var three = x * 1e-308 + 3.0, four = x * 1e-308 + 4.0;
  agreed(tape, {gelu_of(four, four), sin(three)});
  const Var tiny = tape.parameter("tiny", xt::xarray<double>{1e-300, -2e-300});
  const Var large = tiny * 1e200 * 1e109 * 1e-9, less = tiny * 1e200 * 1e109 * 1e-10;
  agreed(tape, {gelu_of(large, less)});
  agreed(tape, {gelu_of(tiny * 1e300 * 1e-300, tiny)});
}

TEST_CASE("masked scores that are scaled afterwards are fused as attention for positive scales only") {
  Tape tape;
  const Var q = tape.parameter("q", normal_array({2, 3, 4}, 1)), k = tape.parameter("k", normal_array({2, 5, 4}, 2));
  const Var hidden = tape.constant(xt::xarray<bool>{true, false, false, true, false});
  for (const double scale : {0.5, 0.0, -0.5, infinity}) {
    CAPTURE(scale);
    agreed(tape,
           {einsum("bqk,bkd->bqd", softmax(masked_fill(einsum("bqd,bkd->bqk", q, k) * scale, hidden, -infinity)), k)});
    const Var masked = masked_fill(einsum("bqd,bkd->bqk", q, k), hidden, -infinity) * scale;
    CHECK(agreed(tape, {einsum("bqk,bkd->bqd", softmax(masked), k)}) == (scale > 0 ? 1 : 0));
  }
}

TEST_CASE("a loss scaled by 1 is treated as the loss itself") {
  for (const bool counted : {false, true}) {
    Tape tape;
    tape.set_default_dtype(Dtype::float64);
    const Var x = tape.parameter("x", normal_array({1040, 3}, 1)), w = tape.parameter("w", normal_array({5500, 3}, 2));
    const auto [total, count] = cross_entropy_sum(matmul(x, transpose(w)), mod(iota(tape, {1040}) * 7919, 5500));
    const Var loss = counted ? (total / 1.0) / cast(count, Dtype::float64) : total * 1.0;
    const Vars gradients = grad(loss, {x, w});
    CHECK(agreed(tape, {loss, gradients[0], gradients[1]}) == 1);
  }
}

}  // namespace rules
