// Calls that expand, calls that are merged, and calls that share a kernel.
#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <string>

#include "player/program/passes.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"
#include "xtape/xtensor.hpp"

namespace equal_calls {

using namespace xtape;

TEST_CASE("merging equal calls compares 150,000 different literals only with equal ones") {
  constexpr int different = 150000;  // compared with each other, they take longer than the suite may
  Tape tape;
  Vars literals;
  for (int i = 0; i < 2 * different; ++i) literals.push_back(tape.constant(i % different, Dtype::float64));
  Program program = extract(tape, literals, {});
  common_pass(program);
  CHECK(program.outputs.size() == literals.size());
  CHECK(program.outputs[0] == program.outputs[different]);
  CHECK(program.outputs[1] != program.outputs[0]);
}

namespace {
/// An op of one or two arrays of one type, played through `expand`.
Op expanded_op(const char* name, std::vector<InputSpec> inputs, std::function<Vars(const ExpandCall&)> expand) {
  Op op;
  op.name = name;
  op.doc = "For a test.";
  op.inputs = std::move(inputs);
  op.shape = [](const OpCall& call) { return std::vector<ValueType>{call.inputs[0]}; };
  op.expand = std::move(expand);
  return op;
}
}  // namespace

TEST_CASE("an expansion may take a parameter that the tape has after the call") {
  static const Array weight(xt::xarray<float>{2, 3});
  static const Op op = expanded_op("weighted", {{"x", Accept::floating}}, [](const ExpandCall& call) {
    Tape tape = call.tape;
    return Vars{call.inputs[0] * tape.parameter("w", weight)};
  });
  Tape tape;
  const Var x = tape.input("x", {2});
  const Var y = apply(op, {x})[0];
  const Var sum = y + tape.parameter("w", weight);
  Player player(tape, {sum});
  player.play({{x, xt::xarray<float>{10, 100}}});
  CHECK(player.view(sum).to<float>() == xt::xarray<float>{22, 303});
}

TEST_CASE("an expansion may differentiate: its inputs are constants to each other, whatever was expanded before") {
  static const Op op =
      expanded_op("slope", {{"a", Accept::floating}, {"b", Accept::floating}}, [](const ExpandCall& call) {
        return grad(sum(call.inputs[0] * call.inputs[0] * call.inputs[1]), {call.inputs[0]});  // 2 a b
      });
  Tape tape;
  const Var x = tape.input("x", {2});
  const Var half = split(x, 2, 0)[1];  // has no kernel, so it is expanded, too
  const Var depends = apply(op, {x, x + half})[0], twice = apply(op, {depends, square(depends)})[0];
  Player player(tape, {depends, twice});
  player.play({{x, xt::xarray<float>{1, 2}}});
  CHECK(player.view(depends).to<float>() == xt::xarray<float>{6, 16});            // 2 x (x + 2)
  CHECK(player.view(twice).to<float>() == xt::xarray<float>{2 * 216, 2 * 4096});  // 2 d^3
}

TEST_CASE("calls whose attributes are 0 and -0 are not merged") {
  Tape tape;
  const Var x = tape.input("x", {2}), mask = tape.constant(xt::xarray<bool>{true, true});
  const Var above = masked_fill(x, mask, 0.0), below = masked_fill(x, mask, -0.0);
  Player player(tape, {1.0 / above, 1.0 / below});
  player.play({{x, xt::xarray<float>{1, 2}}});
  constexpr float infinity = std::numeric_limits<float>::infinity();
  CHECK(player.view(player.outputs()[0]).as<float>()[0] == infinity);
  CHECK(player.view(player.outputs()[1]).as<float>()[0] == -infinity);
}

namespace {
int kernels_made = 0;

/// An op that counts how many kernels are made. Its inputs may have any layout.
Op counted_op(bool random) {
  Op op;
  op.name = random ? "counted_random" : "counted";
  op.doc = "Counts its kernels.";
  op.inputs = {{"x", Accept::any}};
  op.attributes = {{"by", AttributeType::number, "A number.", std::nullopt}};
  op.random = random;
  op.shape = [](const OpCall& call) { return std::vector<ValueType>{{call.dtype(0), call.shape(0)}}; };
  op.lowering.layouts.any_in = true;
  op.lowering.kernel = [](const KernelCall&) {
    ++kernels_made;
    return Kernel{[](const KernelArguments&) {}};  // is never played
  };
  return op;
}
}  // namespace

TEST_CASE("equal calls share a kernel; calls of another shape, dtype, attribute or layout, and random ones, do not") {
  static const Op counted = counted_op(false), random = counted_op(true);
  const auto made_by = [](const std::function<Vars(Tape&)>& record) {
    Tape tape;
    kernels_made = 0;
    Player player(tape, record(tape));
    return kernels_made;
  };
  const auto call = [](const Op& op, const Var& x, double by) { return apply(op, {x}, {{"by", by}})[0]; };
  CHECK(made_by([&](Tape& tape) {
          Var x = tape.input("x", {3});
          for (int i = 0; i < 12; ++i) x = call(counted, x, 1);
          return Vars{x};
        }) == 1);
  CHECK(made_by([&](Tape& tape) {
          const Var x = tape.input("x", {3}), y = tape.input("y", {4}), z = tape.input("z", {3, 1});
          return Vars{call(counted, x, 1), call(counted, x, 0.0), call(counted, x, -0.0), call(counted, y, 1),
                      call(counted, z, 1)};
        }) == 5);
  CHECK(made_by([&](Tape& tape) {
          const Var x = tape.input("x", {3});
          return Vars{call(random, x, 1), call(random, x, 1)};
        }) == 2);
  CHECK(made_by([&](Tape& tape) {
          const Var x = tape.input("x", {3, 3}), y = tape.input("y", {3, 3}, Dtype::int32);
          return Vars{call(counted, x, 1), call(counted, transpose(x), 1), call(counted, y, 1)};
        }) == 3);
}

TEST_CASE("equal groups of elementwise ops share a body, but each draws numbers of its own") {
  Tape tape;
  const xt::xarray<float> ones = xt::ones<float>({30, 30});
  const Var x = tape.parameter("x", ones), y = tape.parameter("y", ones);
  const auto group = [](const Var& v) { return dropout(v * 2, 0.5) + 1; };
  const Var a = group(x), b = group(y);
  PlayerOptions reference;
  reference.passes = Passes::reference();
  Player fused(tape, {a, b}), plain(tape, {a, b}, reference);
  for (Player* player : {&fused, &plain}) player->play({}, 3);
  CHECK(fused.plan().steps.size() == 2);
  CHECK(fused.value<float>(a) == plain.value<float>(a));
  CHECK(fused.value<float>(b) == plain.value<float>(b));
  CHECK(fused.value<float>(a) != fused.value<float>(b));
}

}  // namespace equal_calls
