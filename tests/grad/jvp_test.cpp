// The forward sweep. Every gradient check of the suite ops also compares jvp with grad (tests/support).
#include <doctest/doctest.h>

#include <cmath>

#include "folders.hpp"
#include "xtape/grad.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"
#include "xtape/scan.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
Var input(Tape& tape, const char* name, const Shape& shape = {}) {
  return tape.input(name, shape, Dtype::float64);
}
using Numbers = xt::xarray<double>;

double scalar(const Var& var, const std::vector<std::pair<Var, Numbers>>& points) {
  std::vector<Feed> feeds;
  for (const auto& [input, numbers] : points) feeds.emplace_back(input, numbers);
  return *evaluate(var, feeds).as<double>();
}
}  // namespace

TEST_CASE("a tangent is the derivative along a direction") {
  Tape tape;
  const Var x = input(tape, "x"), t = input(tape, "t");
  const Var y = sin(x) * x;
  const Var dy = jvp({y}, {x}, {t})[0];
  CHECK(scalar(dy, {{x, Numbers(0.7)}, {t, Numbers(2.0)}}) ==
        doctest::Approx(2 * (std::cos(0.7) * 0.7 + std::sin(0.7))));
}

TEST_CASE("tangents of several inputs add up, and an intermediate input adds to what reaches it") {
  Tape tape;
  const Var x = input(tape, "x"), s = input(tape, "s"), t = input(tape, "t");
  const Var y = square(x), z = y * 3;
  CHECK(scalar(jvp({z}, {x, y}, {s, t})[0], {{x, Numbers(0.5)}, {s, Numbers(2.0)}, {t, Numbers(7.0)}}) ==
        doctest::Approx(3 * (2 * 0.5 * 2 + 7)));
}

TEST_CASE("an output that no input reaches has a tangent of zeros") {
  Tape tape;
  const Var x = input(tape, "x", {2}), y = input(tape, "y", {3});
  const Vars found = jvp({y * 2, stop_gradient(x), x}, {x}, {ones_like(x)});
  CHECK(found[0].shape() == Shape{3});
  CHECK(value<double>(sum(found[0]) + sum(found[1])).flat(0) == 0);
  CHECK(value<double>(sum(found[2])).flat(0) == 2);
}

TEST_CASE("tangents of tangents and of gradients are second derivatives") {
  Tape tape;
  const Var x = input(tape, "x"), t = input(tape, "t");
  const Var y = exp(x * 2);
  const Var first = jvp({y}, {x}, {t})[0];
  const double second = 4 * std::exp(0.6);
  CHECK(scalar(jvp({first}, {x}, {t})[0], {{x, Numbers(0.3)}, {t, Numbers(1.0)}}) == doctest::Approx(second));
  CHECK(scalar(grad(first, {x})[0], {{x, Numbers(0.3)}, {t, Numbers(1.0)}}) == doctest::Approx(second));
  CHECK(scalar(jvp(grad(y, {x}), {x}, {t})[0], {{x, Numbers(0.3)}, {t, Numbers(1.0)}}) == doctest::Approx(second));
  const Var third = jvp({jvp({first}, {x}, {t})[0]}, {x}, {t})[0];
  CHECK(scalar(third, {{x, Numbers(0.3)}, {t, Numbers(1.0)}}) == doctest::Approx(2 * second));
}

TEST_CASE("the tangent of a scan is a scan") {
  Tape tape;
  const Var xs = input(tape, "xs", {2, 5, 3}), w = input(tape, "w", {3, 3}), h0 = input(tape, "h0", {2, 3});
  for (const bool reverse : {false, true}) {
    CAPTURE(reverse);
    const ScanFunction cell = [&](const Vars& x, const Vars& h) {
      const Var next = tanh(matmul(h[0], w) + x[0]);
      return std::make_pair(Vars{next * 2}, Vars{next});
    };
    ScanOptions options;
    options.reverse = reverse;
    const Scanned scanned = scan(cell, {xs}, {h0}, options);
    const Vars outputs{scanned.outputs[0], scanned.states[0]}, inputs{xs, w, h0};
    Vars tangents, cotangents;
    for (const Var& each : inputs) tangents.push_back(cos(each + 1));
    for (const Var& each : outputs) cotangents.push_back(sin(each + 2));
    const Vars forward = jvp(outputs, inputs, tangents), back = grad(outputs, inputs, cotangents);
    Var by_jvp = zeros(tape, {}, Dtype::float64), by_grad = by_jvp;
    for (std::size_t i = 0; i < outputs.size(); ++i) by_jvp = by_jvp + sum(forward[i] * cotangents[i]);
    for (std::size_t i = 0; i < inputs.size(); ++i) by_grad = by_grad + sum(back[i] * tangents[i]);
    const xt::xarray<double> x = xt::arange<double>(30).reshape({2, 5, 3}) / 20, weight = xt::eye<double>(3) * 0.7,
                             h = xt::ones<double>({2, 3}) * 0.3;
    const std::vector<std::pair<Var, Numbers>> feeds{{xs, x}, {w, weight}, {h0, h}};
    CHECK(scalar(by_jvp, feeds) == doctest::Approx(scalar(by_grad, feeds)));
    std::size_t scans = 0;
    for (std::size_t i = static_cast<std::size_t>(forward[0].id().node) + 1; i-- > 0;)
      scans += tape.node(i).op->name == "scan" ? 1 : 0;
    CHECK(scans >= 2);
  }
}

TEST_CASE("the tangent of a checkpoint is that of its body") {
  Tape tape;
  const Var x = input(tape, "x", {3});
  const Var w = input(tape, "w", {3});
  const auto function = [&](const Vars& given) { return Vars{sin(given[0] * w), given[0] + 1}; };
  const Vars kept = checkpoint(function, {x}), plain = function({x});
  const Vars a = jvp(kept, {x, w}, {cos(w), sin(x)}), b = jvp(plain, {x, w}, {cos(w), sin(x)});
  const xt::xarray<double> at{0.1, 0.2, 0.3}, weight{1.0, -2.0, 3.0};
  for (std::size_t i = 0; i < 2; ++i)
    CHECK(xt::allclose(evaluate(a[i], {{x, at}, {w, weight}}).to<double>(),
                       evaluate(b[i], {{x, at}, {w, weight}}).to<double>()));
}

TEST_CASE("the memory of tangents does not grow with depth") {
  const auto bytes = [](int depth, bool checkpointed, bool again) {
    Tape tape;
    const Var x = input(tape, "x", {16, 32}), t = input(tape, "t", {16, 32});
    Var y = x;
    for (int i = 0; i < depth; ++i) {
      const Var w = input(tape, ("w" + std::to_string(i)).c_str(), {32, 32});
      const auto layer = [&](const Vars& given) {
        return Vars{gelu(layer_norm(matmul(given[0], w)) * sigmoid(given[0]))};
      };
      y = checkpointed ? checkpoint(layer, {y})[0] : layer({y})[0];
    }
    Var tangent = jvp({y}, {x}, {t})[0];
    if (again) tangent = jvp({tangent}, {x}, {t})[0];
    PlayerOptions options;
    options.threads = 1;
    const std::size_t planned = Player(tape, {y, tangent}, options).plan().arena_bytes;
    const test::Folder folder;
    tape.save(folder / "tape", {{"y", y}, {"tangent", tangent}});
    const SavedTape saved = Tape::load(folder / "tape");
    CHECK(Player(saved.tape, {saved.outputs.at("y"), saved.outputs.at("tangent")}, options).plan().arena_bytes ==
          planned);
    return planned;
  };
  for (const bool checkpointed : {false, true})
    for (const bool again : {false, true}) {
      CAPTURE(checkpointed);
      CAPTURE(again);
      CHECK(bytes(24, checkpointed, again) == bytes(6, checkpointed, again));
    }
}

TEST_CASE("an op without rules is differentiated through its expansion, and one without anything is an error") {
  Op op;
  op.name = "own_product";
  op.doc = "a b.";
  op.inputs = {{"a", Accept::floating}, {"b", Accept::floating}};
  op.shape = [](const OpCall& call) { return std::vector<ValueType>{call.inputs[0]}; };
  op.expand = [](const ExpandCall& call) { return Vars{call.inputs[0] * call.inputs[1]}; };
  Tape tape;
  const Var x = input(tape, "x"), t = input(tape, "t");
  CHECK(scalar(jvp({apply(op, {x, x})[0]}, {x}, {t})[0], {{x, Numbers(3.0)}, {t, Numbers(1.0)}}) == doctest::Approx(6));
  Op bare = op;
  bare.expand = {};
  bare.lowering.kernel = [](const KernelCall&) { return Kernel{}; };
  const Var y = apply(bare, {x, x})[0];
  const std::size_t size = tape.size();
  CHECK_THROWS_WITH_AS(jvp({y}, {x}, {t}),
                       doctest::Contains("own_product: has neither a gradient rule nor an expansion"), Error);
  CHECK(tape.size() == size);
}

TEST_CASE("an op's own tangent rule is used, and what it gives is checked") {
  Op op;
  op.name = "twice";
  op.doc = "2 x.";
  op.inputs = {{"x", Accept::floating}};
  op.shape = [](const OpCall& call) { return std::vector<ValueType>{call.inputs[0]}; };
  op.expand = [](const ExpandCall& call) { return Vars{call.inputs[0] * 2.0}; };
  op.derivative.tangent = [](const TangentCall& call) { return Vars{call.tangents[0] * 5.0}; };
  Tape tape;
  const Var x = input(tape, "x", {2});
  CHECK(value<double>(sum(jvp({apply(op, {x})[0]}, {x}, {ones_like(x)})[0])).flat(0) == 10);
  op.derivative.tangent = [](const TangentCall& call) { return Vars{sum(call.tangents[0])}; };
  CHECK_THROWS_WITH_AS(jvp({apply(op, {x})[0]}, {x}, {ones_like(x)}),
                       doctest::Contains("twice: its tangent rule gave float64 () for output 0, which is float64 (2,)"),
                       Error);
  op.derivative.tangent = [](const TangentCall&) { return Vars{}; };
  CHECK_THROWS_WITH_AS(jvp({apply(op, {x})[0]}, {x}, {ones_like(x)}),
                       doctest::Contains("twice: its tangent rule gave 0 vars for 1 outputs"), Error);
}

TEST_CASE("jvp refuses what does not fit, and then nothing is recorded") {
  Tape tape, other;
  const Var x = input(tape, "x", {2}), y = x * 2;
  const Var wrong = input(tape, "wrong", {3}), far = input(other, "far", {2});
  const Var whole = tape.input("n", {2}, Dtype::int64);
  const std::size_t size = tape.size();
  CHECK_THROWS_WITH_AS(jvp({y}, {x}, {}), doctest::Contains("jvp: got 0 tangents for 1 inputs"), Error);
  CHECK_THROWS_WITH_AS(jvp({}, {x}, {x}), doctest::Contains("jvp: needs at least one output and one input"), Error);
  CHECK_THROWS_WITH_AS(jvp({y}, {x}, {wrong}),
                       doctest::Contains("jvp: tangent 0 is float64 (3,), its input float64 (2,)"), ShapeError);
  CHECK_THROWS_WITH_AS(jvp({y}, {x}, {far}), doctest::Contains("jvp: a tangent is of another tape"), HandleError);
  CHECK_THROWS_WITH_AS(jvp({whole}, {x}, {x}),
                       doctest::Contains("jvp: an output must be a float array, got int64 (2,)"), DtypeError);
  CHECK_THROWS_AS(jvp({y}, {x}, {Var()}), HandleError);
  CHECK(tape.size() == size);
}
