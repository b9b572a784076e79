// vmap. Every gradient check of the suite ops also compares the mapped function with a loop (tests/support).
#include "xtape/vmap.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "xtape/grad.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"
#include "xtape/scan.hpp"
#include "xtape/xtensor.hpp"
#include "xview.hpp"

using namespace xtape;

namespace {
using Numbers = xt::xarray<double>;
using Function = std::function<Vars(const Vars&)>;

Numbers numbers(const std::vector<std::size_t>& shape, double scale = 1) {
  Numbers found = xt::zeros<double>(shape);
  double i = 0;
  for (double& each : found) each = scale * std::sin(1.3 * ++i);
  return found;
}

/// The values of vars, as float64.
std::vector<Numbers> played(const Tape& tape, const Vars& vars) {
  Vars wide;
  for (const Var& var : vars) wide.push_back(cast(var, Dtype::float64));
  Player player(tape, wide);
  player.play({}, 3);
  std::vector<Numbers> found;
  for (const Var& var : wide) found.push_back(player.view(var).to<double>());
  return found;
}

bool is_close(const Numbers& a, const Numbers& b) {
  bool close = a.shape() == b.shape();
  for (std::size_t i = 0; close && i < a.size(); ++i)
    close = a.flat(i) == b.flat(i) || std::abs(a.flat(i) - b.flat(i)) <= 1e-12 * (1 + std::abs(b.flat(i))) ||
            (std::isnan(a.flat(i)) && std::isnan(b.flat(i)));
  return close;
}

/// Checks that the function mapped over the given axes of constants equals a loop.
void check_mapped(const Function& function, const std::vector<Array>& arrays, const VmapOptions& options = {}) {
  Tape tape;
  tape.set_default_dtype(Dtype::float64);
  Vars inputs;
  for (const Array& array : arrays) inputs.push_back(tape.constant(array));
  const auto axis_of = [&](std::size_t i) -> std::optional<std::int64_t> {
    return options.in_axes.empty() ? 0 : options.in_axes[i];
  };
  const Vars together = vmap(function, inputs, options);
  std::int64_t size = -1;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (axis_of(i)) size = inputs[i].size(*axis_of(i));
  std::vector<Vars> alone(together.size());
  for (std::int64_t k = 0; k < size; ++k) {
    Vars one;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!axis_of(i)) {
        one.push_back(inputs[i]);
        continue;
      }
      const std::size_t axis = normal_axis(*axis_of(i), inputs[i].rank());
      std::vector<std::int64_t> start(axis, 0), stop(axis, open_end);
      start.push_back(k);
      stop.push_back(k + 1);
      one.push_back(squeeze(slice(inputs[i], start, stop), {static_cast<std::int64_t>(axis)}));
    }
    const Vars results = function(one);
    REQUIRE(results.size() == together.size());
    for (std::size_t r = 0; r < results.size(); ++r) alone[r].push_back(results[r]);
  }
  Vars all = together;
  for (std::size_t r = 0; r < together.size(); ++r) {
    const std::int64_t axis = options.out_axes.empty() ? 0 : options.out_axes[r];
    all.push_back(stack(alone[r], axis));
    CHECK(all.back().type() == together[r].type());
  }
  const std::vector<Numbers> values = played(tape, all);
  for (std::size_t r = 0; r < together.size(); ++r) {
    CAPTURE(r);
    CHECK(is_close(values[r], values[together.size() + r]));
  }
}

Array floats(const std::vector<std::size_t>& shape) {
  return Array(ArrayView(numbers(shape)));
}
Array integers(const std::vector<std::size_t>& shape, std::int64_t below) {
  xt::xarray<std::int64_t> found = xt::zeros<std::int64_t>(shape);
  std::int64_t i = 0;
  for (std::int64_t& each : found) {
    ++i;
    each = (5 * i + i / 3) % below;
  }
  return Array(ArrayView(found));
}
}  // namespace

TEST_CASE("elementwise ops align the ranks of mapped and unmapped operands") {
  const Function sums = [](const Vars& x) {
    return Vars{x[0] + x[1], x[1] * x[0] - 2, where(x[0] < x[1], x[0], x[1])};
  };
  check_mapped(sums, {floats({4, 3}), floats({4, 2, 3})});
  check_mapped(sums, {floats({4}), floats({4, 2, 3})});
  check_mapped(sums, {floats({2, 3}), floats({4, 3})}, {.in_axes = {std::nullopt, 0}});
  check_mapped(sums, {floats({3, 4}), floats({2, 3})}, {.in_axes = {1, std::nullopt}, .out_axes = {0, 2, -1}});
  check_mapped(sums, {floats({4}), floats({5, 1, 3})}, {.in_axes = {0, std::nullopt}});
}

TEST_CASE("products get one more letter") {
  const Function products = [](const Vars& x) {
    return Vars{matmul(x[0], x[1]), einsum("ij,jk->k", x[0], x[1]), einsum("ij,jk->", x[0], x[1])};
  };
  check_mapped(products, {floats({4, 2, 3}), floats({4, 3, 5})});
  check_mapped(products, {floats({2, 3}), floats({3, 5, 4})}, {.in_axes = {std::nullopt, -1}});
  check_mapped(products, {floats({2, 4, 3}), floats({3, 5})}, {.in_axes = {1, std::nullopt}});
  check_mapped([](const Vars& x) { return Vars{matmul(x[0], x[0])}; }, {floats({4, 3})});
}

TEST_CASE("indexing with mapped indices, mapped arrays, or both") {
  for (const std::int64_t axis : {0, 1, -1}) {
    CAPTURE(axis);
    const Function taking = [=](const Vars& x) {
      const Var y = take(x[0], x[1], axis);
      return Vars{y, index_add(x[0], axis, x[1], y * 2)};
    };
    check_mapped(taking, {floats({4, 3, 3}), integers({4, 2, 2}, 3)});
    check_mapped(taking, {floats({4, 3, 3}), integers({2}, 3)}, {.in_axes = {0, std::nullopt}});
    check_mapped(taking, {floats({3, 3}), integers({4, 2, 2}, 3)}, {.in_axes = {std::nullopt, 0}});
    check_mapped(taking, {floats({3, 3}), integers({4}, 3)}, {.in_axes = {std::nullopt, 0}});
    const Function gathering = [=](const Vars& x) {
      const Var y = gather(x[0], axis, x[1]);
      return Vars{y, scatter_add(x[0], axis, x[1], y * 2)};
    };
    check_mapped(gathering, {floats({4, 3, 3}), integers({4, 3, 3}, 3)});
    check_mapped(gathering, {floats({4, 3, 3}), integers({3, 3}, 3)}, {.in_axes = {0, std::nullopt}});
    check_mapped(gathering, {floats({3, 3}), integers({4, 3, 3}, 3)}, {.in_axes = {std::nullopt, 0}});
  }
  check_mapped([](const Vars& x) { return Vars{one_hot(x[0], 3), one_hot(x[0] + 2, 3)}; }, {integers({4, 2}, 3)});
}

TEST_CASE("an index outside of one example's array is an error, not another example's element") {
  Tape tape;
  const xt::xarray<std::int64_t> wrong{{0, 1}, {2, 3}};  // 3 would be the first element of a third example
  const Var x = tape.constant(floats({2, 3})), indices = tape.constant(ArrayView(wrong));
  const Var y = vmap([](const Vars& each) { return Vars{take(each[0], each[1])}; }, {x, indices})[0];
  CHECK_THROWS_WITH_AS(evaluate(y), doctest::Contains("is out of range"), Error);
}

TEST_CASE("reductions over given axes, all axes, and of scalars") {
  const Function reductions = [](const Vars& x) {
    return Vars{sum(x[0]),
                mean(x[0], {}, true),
                max(x[0], {0}),
                argmax(x[0], 0),
                variance(x[0], {-1}),
                logsumexp(x[0], {-1}),
                cumsum(x[0], 0, true),
                flip(x[0], {}),
                any(x[0] > 0)};
  };
  check_mapped(reductions, {floats({4, 3, 2})});
  check_mapped(reductions, {floats({3, 4})}, {.in_axes = {1}});
  const Function of_scalars = [](const Vars& x) {
    return Vars{sum(x[0]),
                mean(x[0], {}, true),
                max(x[0]),
                flip(x[0], {}),
                squeeze(x[0]),
                reshape(x[0], {1, 1}),
                expand_dims(x[0], 0),
                transpose(x[0]),
                softmax(expand_dims(x[0], 0)),
                broadcast_to(x[0], {2, 3})};
  };
  check_mapped(of_scalars, {floats({4})});
  check_mapped([](const Vars& x) { return Vars{top_k(x[0], 2).first, top_k(x[0], 2).second}; }, {floats({4, 3})});
}

TEST_CASE("shapes") {
  const Function shapes = [](const Vars& x) {
    return Vars{reshape(x[0], {-1}),
                transpose(x[0]),
                transpose(x[0], {1, 0}),
                squeeze(expand_dims(x[0], -1)),
                concat({x[0], x[1]}, -1),
                stack({x[0], x[1]}, -1),
                split(x[0], 3, 1)[1],
                unstack(x[0], 0)[1],
                slice(x[0], {1}, {2}),
                slice(x[0], {0, -1}, {2, 0}, {1, -1}),
                pad(x[0], {1, 0}, {0, 2}, 7),
                update_slice(x[0], slice(x[1], {0}, {1}), {-1}),
                tile(x[0], {2, 1}),
                tril(x[0]),
                diag_embed(x[0]),
                diagonal(slice(x[0], {0, 0}, {2, 2}), 0, 1),
                rearrange(x[0], "a b -> (b a)"),
                shift_right(x[0], 0)};
  };
  check_mapped(shapes, {floats({4, 2, 3}), floats({4, 2, 3})});
  check_mapped(shapes, {floats({2, 4, 3}), floats({2, 3})}, {.in_axes = {1, std::nullopt}});
  check_mapped(shapes, {floats({2, 3}), floats({2, 3, 4})}, {.in_axes = {std::nullopt, 2}});
}

TEST_CASE("normalisations and losses are those of each example") {
  const Function norms = [](const Vars& x) {
    return Vars{softmax(x[0], 0), log_softmax(x[0]), layer_norm(x[0], x[1], x[2]), rms_norm(x[0], x[1])};
  };
  check_mapped(norms, {floats({4, 2, 3}), floats({3}), floats({3})}, {.in_axes = {0, std::nullopt, std::nullopt}});
  check_mapped(norms, {floats({4, 2, 3}), floats({4, 3}), floats({4, 3})});
  check_mapped(norms, {floats({2, 3}), floats({4, 3}), floats({3})}, {.in_axes = {std::nullopt, 0, std::nullopt}});
  const Function loss = [](const Vars& x) {
    const auto [total, count] = cross_entropy_sum(x[0], x[1], 2, 0.1);
    return Vars{total, count};
  };
  check_mapped(loss, {floats({4, 2, 3}), integers({4, 2}, 3)});
  check_mapped(loss, {floats({2, 3}), integers({4, 2}, 3)}, {.in_axes = {std::nullopt, 0}});
}

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

TEST_CASE("random ops draw for each example, or once for all") {
  Tape tape;
  const Var x = tape.constant(ArrayView(Numbers(xt::ones<double>({6, 50}))));
  const Function draws = [](const Vars& each) {
    const Tape here = each[0].tape();
    return Vars{dropout(each[0], 0.5), uniform(here, {50}, 0, 1, Dtype::float64), each[0] * 1};
  };
  const Vars different = vmap(draws, {x}), same = vmap(draws, {x}, {.randomness = Randomness::same});
  const auto values = played(tape, {different[0], different[1], same[0], same[1]});
  for (std::size_t k : {0, 1}) {
    CHECK(values[k].shape()[0] == 6);
    CHECK(xt::view(values[k], 0) != xt::view(values[k], 1));
    for (int row = 1; row < 6; ++row) CHECK(xt::view(values[k + 2], 0) == xt::view(values[k + 2], row));
  }
  CHECK(xt::view(values[2], 0) != xt::view(values[3], 0));
  const Function choose = [](const Vars& each) { return Vars{categorical(each[0])}; };
  const auto chosen = played(tape, vmap(choose, {x}));
  CHECK(chosen[0].size() == 6);
  CHECK_THROWS_WITH_AS(vmap(choose, {x}, {.randomness = Randomness::same}),
                       doctest::Contains("vmap: categorical cannot draw the same numbers for all examples"), Error);
  // of an operand that is the same for all examples, too
  const Var whole = tape.constant(ArrayView(Numbers(xt::ones<double>({50}))));
  const auto apart = played(tape, vmap([&](const Vars& each) { return Vars{dropout(whole, 0.5) + each[0]}; }, {x}));
  CHECK(xt::view(apart[0], 0) != xt::view(apart[0], 1));
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

TEST_CASE("attention draws for each example, and repeats what an attention outside has drawn") {
  Tape tape;
  tape.set_default_dtype(Dtype::float64);
  const Function attention = [](const Vars& x) {
    const Var weights = softmax(einsum("bqhe,bkhe->bhqk", x[0], x[1]) * 0.3);
    return Vars{einsum("bhqk,bkhd->bqhd", dropout(weights, 0.5), x[1])};
  };
  const Var q = tape.constant(floats({2, 3, 2, 4})), k = tape.constant(floats({2, 5, 2, 4}));
  const Var y = attention({q, k})[0], cotangents = tape.constant(floats({3, 2, 3, 2, 4}));
  const Var together = vmap([&](const Vars& c) { return grad({y}, {k}, {c[0]}); }, {cotangents})[0];
  Vars alone;
  for (const Var& cotangent : unstack(cotangents)) alone.push_back(grad({y}, {k}, {cotangent})[0]);
  // With k the same for all examples, their results differ by the draws only; the gradients use the same draws.
  const Vars spread = vmap(
      [&](const Vars& x) {
        const Var each = attention({x[0], k})[0];
        return Vars{each, grad(sum(each * each), {k})[0], sum(each * each)};
      },
      {stack({q, q})});
  const Vars outside = grad(sum(spread[2]), {k});
  const std::vector<Numbers> values =
      played(tape, {together, stack(alone), spread[0], sum(spread[1], {0}), outside[0]});
  CHECK(is_close(values[0], values[1]));
  CHECK_FALSE(is_close(xt::view(values[2], 0), xt::view(values[2], 1)));
  CHECK(is_close(values[3], values[4]));
}
