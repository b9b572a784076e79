// vmap with gradients, scans and other maps, and its errors.
#include "xtape/vmap.hpp"

#include "mapped.hpp"
#include "xtape/grad.hpp"
#include "xtape/op/op.hpp"
#include "xtape/scan.hpp"
#include "xview.hpp"

namespace mapped {

TEST_CASE("grad inside vmap gives the gradients of each example") {
  const Function gradient = [](const Vars& x) {
    const Var loss = sum(square(tanh(matmul(x[0], x[1])) - 1));
    return grad(loss, {x[1], x[0]});
  };
  check_mapped(gradient, {floats({4, 3}), floats({3, 2})}, {.in_axes = {0, std::nullopt}});
}

TEST_CASE("vmap inside vmap, grad around it, and jvp in it") {
  const Function inner = [](const Vars& x) { return Vars{sin(x[0]) * sum(x[1])}; };
  const Function nested = [&](const Vars& x) {
    return vmap(inner, {x[0], x[1]}, {.in_axes = {0, std::nullopt}, .out_axes = {-1}});
  };
  check_mapped(nested, {floats({4, 2, 3}), floats({4, 5})});
  check_mapped(nested, {floats({2, 3}), floats({5, 4})}, {.in_axes = {std::nullopt, 1}});
  check_mapped([&](const Vars& x) { return grad(sum(nested(x)[0]), x); }, {floats({4, 2, 3}), floats({4, 5})});
  check_mapped([&](const Vars& x) { return jvp(nested(x), {x[0]}, {cos(x[0])}); }, {floats({4, 2, 3}), floats({4, 5})});
}

TEST_CASE("scans and checkpoints are mapped with their bodies") {
  const Function recurrent = [](const Vars& x) {
    const ScanFunction cell = [&](const Vars& step, const Vars& state) {
      const Var next = tanh(matmul(state[0], x[1]) + step[0]);
      return std::make_pair(Vars{next * 2, step[0] * 3}, Vars{next, state[1] + 1});
    };
    const Scanned scanned = scan(cell, {x[0]}, {x[2], zeros(x[0].tape(), {}, Dtype::int64)});
    const Var loss = sum(square(scanned.outputs[0])) + sum(scanned.states[0]);
    Vars results{scanned.outputs[0], scanned.outputs[1], scanned.states[0], scanned.states[1]};
    for (const Var& gradient : grad(loss, x)) results.push_back(gradient);
    return results;
  };
  check_mapped(recurrent, {floats({4, 2, 5, 3}), floats({4, 3, 3}), floats({4, 2, 3})});
  check_mapped(recurrent, {floats({2, 5, 3}), floats({4, 3, 3}), floats({2, 3})},
               {.in_axes = {std::nullopt, 0, std::nullopt}});
  check_mapped(recurrent, {floats({2, 5, 3, 4}), floats({3, 3}), floats({2, 3})},
               {.in_axes = {3, std::nullopt, std::nullopt}});
  check_mapped(recurrent, {floats({2, 5, 3}), floats({3, 3}), floats({2, 4, 3})},
               {.in_axes = {std::nullopt, std::nullopt, 1}});
  const Function kept = [](const Vars& x) {
    const Var y = checkpoint([&](const Vars& given) { return Vars{sin(given[0]) * given[1]}; }, x)[0];
    Vars results{y};
    for (const Var& gradient : grad(sum(y), x)) results.push_back(gradient);
    return results;
  };
  check_mapped(kept, {floats({4, 3}), floats({3})}, {.in_axes = {0, std::nullopt}});
}

TEST_CASE("vmap inside a scan") {
  const Function function = [](const Vars& x) {
    const ScanFunction cell = [&](const Vars& step, const Vars& state) {
      const Vars next = vmap([](const Vars& row) { return Vars{softmax(row[0]) + row[1]}; }, {step[0], state[0]});
      return std::make_pair(next, next);
    };
    return scan(cell, {x[0]}, {x[1]}).outputs;
  };
  check_mapped(function, {floats({4, 2, 5, 3}), floats({4, 2, 3})});
}

TEST_CASE("results that do not depend on the examples are repeated") {
  check_mapped(
      [](const Vars& x) {
        return Vars{x[1], x[1] * 2, zeros(x[0].tape(), {2}, Dtype::float64)};
      },
      {floats({4, 3}), floats({2})}, {.in_axes = {0, std::nullopt}});
}

TEST_CASE("no examples give no results") {
  Tape tape;
  const Var x = tape.constant(ArrayView(Numbers(xt::zeros<double>({0, 3}))));
  const Var y = vmap([](const Vars& each) { return Vars{softmax(each[0])}; }, {x})[0];
  CHECK(y.shape() == Shape{0, 3});
  CHECK(evaluate(y).count() == 0);
}

TEST_CASE("each op is recorded once for the whole batch, at the line of the function") {
  Tape tape;
  const Var x = tape.input("x", {8, 3}, Dtype::float64);
  const Var y = vmap([](const Vars& each) { return Vars{softmax(each[0])}; }, {x})[0];
  CHECK(tape.size() == 2);
  CHECK(y.node().op->name == "softmax");
  CHECK(to_string(y.node().site).find("vmap_test.cpp") != std::string::npos);
}

TEST_CASE("an op without a rule is mapped through its expansion, and one without anything is an error") {
  Op op;
  op.name = "own_sum";
  op.doc = "The sum.";
  op.inputs = {{"x", Accept::floating}};
  op.shape = [](const OpCall& call) { return std::vector<ValueType>{{call.dtype(0), {}}}; };
  op.expand = [](const ExpandCall& call) { return Vars{sum(call.inputs[0] * 2)}; };
  check_mapped([&](const Vars& x) { return apply(op, {x[0]}); }, {floats({4, 3})});
  op.expand = {};
  op.lowering.kernel = [](const KernelCall&) { return Kernel{}; };
  Tape tape;
  const Var x = tape.constant(floats({4, 3}));
  const std::size_t size = tape.size();
  CHECK_THROWS_WITH_AS(vmap([&](const Vars& each) { return apply(op, {each[0]}); }, {x}),
                       doctest::Contains("vmap: own_sum has neither a batching rule nor an expansion"), Error);
  CHECK(tape.size() == size);
  op.batch = [](const BatchCall& call) { return Vars{call.inputs[0]}; };
  CHECK_THROWS_WITH_AS(vmap([&](const Vars& each) { return apply(op, {each[0]}); }, {x}),
                       doctest::Contains("own_sum: its batching rule gave float64 (4, 3) for output 0, which must be "
                                         "float64 (4,)"),
                       Error);
}

TEST_CASE("vmap refuses what does not fit, and then nothing is recorded") {
  Tape tape, other;
  const Var x = tape.input("x", {4, 3}, Dtype::float64), y = tape.input("y", {5}, Dtype::float64);
  const Var far = other.input("far", {4}, Dtype::float64);
  const Function first = [](const Vars& each) { return Vars{each[0]}; };
  const std::size_t size = tape.size();
  const auto refused = [&](const Function& function, const Vars& inputs, const VmapOptions& options, const char* text) {
    CHECK_THROWS_WITH_AS(vmap(function, inputs, options), doctest::Contains(text), Error);
    CHECK(tape.size() == size);
  };
  refused({}, {x}, {}, "vmap: the function is empty");
  refused(first, {}, {}, "vmap: needs at least one input");
  refused(first, {x}, {.in_axes = {std::nullopt}}, "vmap: needs at least one mapped input");
  refused(first, {x, y}, {}, "equally many examples, got 4 and, in float64 (5,), 5");
  refused(first, {x}, {.in_axes = {2}}, "vmap: input 0 is float64 (4, 3), which has no axis 2");
  refused(first, {x}, {.in_axes = {-3}}, "has no axis -3");
  refused(first, {x}, {.in_axes = {0, 0}}, "vmap: got 2 in_axes for 1 inputs");
  refused(first, {x}, {.out_axes = {0, 0}}, "vmap: got 2 out_axes for 1 results");
  refused(first, {x}, {.out_axes = {2}}, "axis 2");
  refused(first, {x, far}, {}, "vmap: its inputs belong to different tapes");
  refused([](const Vars&) { return Vars{}; }, {x}, {}, "vmap: the function gives no result");
  refused([&](const Vars&) { return Vars{far}; }, {x}, {}, "vmap: the function returned a var of another tape");
  refused([&](const Vars& each) { return grad(sum(each[0]), {x}); }, {x}, {},
          "vmap: the function is only being recorded");
  refused([](const Vars& each) { return Vars{evaluate(each[0]).count() ? each[0] : Var()}; }, {x}, {},
          "vmap: the function is only being recorded, so what it is given has no value yet");
}

TEST_CASE("states cannot be mapped") {
  Tape tape(Mode::predict);
  const Var tokens = tape.input("tokens", {2, 1}, Dtype::int64), past = tape.input("past", {2}, Dtype::int64);
  tape.set_past(tokens, past, 8);
  const Var table = tape.input("table", {5, 3}, Dtype::float64), x = tape.input("x", {4, 3}, Dtype::float64);
  const Function first = [](const Vars& each) { return Vars{each[0]}; };
  CHECK_THROWS_WITH_AS(vmap(first, {take(table, tokens)}),
                       doctest::Contains("has a past, whose states cannot be mapped"), Error);
  const Function caching = [&](const Vars& each) { return Vars{each[0] + sum(cache(take(table, tokens)))}; };
  CHECK_THROWS_WITH_AS(vmap(caching, {x}), doctest::Contains("vmap: the function calls cache"), Error);
}

}  // namespace mapped
