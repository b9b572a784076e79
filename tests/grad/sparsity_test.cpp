// Patterns of Jacobians and Hessians, found on the tape.
#include <doctest/doctest.h>

#include "grad/sparse_functions.hpp"
#include "xtape/custom_gradient.hpp"
#include "xtape/grad.hpp"
#include "xtape/implicit.hpp"
#include "xtape/loops.hpp"
#include "xtape/op/op.hpp"
#include "xtape/player.hpp"
#include "xtape/scan.hpp"

using namespace xtape;
using namespace xtape::sparse_tests;

namespace {
Places places_in(const SparsityPattern& pattern) {
  Places places;
  for (std::size_t i = 0; i < pattern.size(); ++i) places.emplace(pattern.rows[i], pattern.columns[i]);
  REQUIRE(places.size() == pattern.size());
  return places;
}

/// Where the dense Jacobian is not 0 at two points.
Places nonzeros(const Var& output, const Var& input) {
  const Var dense = jacobian(output, input);
  const std::vector<std::size_t> shape(input.shape().begin(), input.shape().end());
  Places places;
  for (const double shift : {0.0, 0.21}) {
    const Array values = evaluate(dense, {{input, Numbers(spread(shape) + shift)}});
    const std::int64_t n = count_of(input.shape());
    for (std::int64_t i = 0; i < values.count(); ++i)
      if (values.as<double>()[i] != 0) places.emplace(i / n, i % n);
  }
  return places;
}
}  // namespace

TEST_CASE("the pattern of common functions is exact") {
  Tape tape;
  const Var x = tape.input("x", {6}, Dtype::float64), m = tape.input("m", {3, 4}, Dtype::float64);
  const Var order = tape.constant(xt::xarray<std::int64_t>{4, 0, 0, 2});
  const Var places = tape.constant(xt::xarray<std::int64_t>{5, 5, 1, 0, 2, 2});
  const Var matrix =
      tape.constant(Numbers{{2, 0, 0, 1, 0, 0}, {0, 3, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0}, {1, 1, 1, 0, 0, 4}});
  const Var each = tape.constant(xt::xarray<std::int64_t>{{0, 2, 1, 0}, {2, 2, 0, 1}, {1, 0, 0, 2}});
  const Var left = slice(x, {0}, {-1}), right = slice(x, {1}, {open_end});
  const std::vector<std::pair<std::string, Var>> of_x = {
      {"elementwise", exp(x) * x - 3},
      {"a stencil", left * right + square(left)},
      {"tridiagonal", pad(sin(right), {0}, {1}) + pad(square(left), {1}, {0}, 3) * x},
      {"broadcast", expand_dims(x, 0) * expand_dims(slice(x, {1}, {3}), 1)},
      {"every second", slice(x, {5}, {-7}, {-2})},
      {"take", take(x, order)},
      {"index_add", index_add(square(x), 0, places, x)},
      {"scatter_add", scatter_add(zeros_like(x), 0, places, sin(x))},
      {"update_slice", update_slice(x, square(slice(x, {0}, {2})), {3})},
      {"concat", concat({flip(x, {0}), slice(x, {2}, {4})}, 0)},
      {"stack", stack({x, sin(x)}, 1)},
      {"split", split(x, {2, 3, 1})[1] * 2},
      {"a constant matrix", matmul(matrix, x)},
      {"its transpose", matmul(slice(x, {0}, {4}), matrix)},
      {"a mask", x * tape.constant(Numbers{1, 0, 0, 2, 0, 3})},
      {"cumsum", cumsum(square(x))},
      {"cumsum from the end", cumsum(square(x), 0, true)},
      {"sum", sum(square(x))},
      {"softmax of halves", softmax(reshape(x, {2, 3}))},
      {"where", where(places > 2, x, flip(x, {0})) * 1},
      {"masked_fill", masked_fill(square(x), places == 5, 3)},
      {"diagonal", matmul(diag_embed(square(x)), tape.constant(Numbers(xt::ones<double>({6, 1}))))},
      {"watch", watch(x, x > 0) * 2},
      {"through float32", cast(cast(x, Dtype::float32), Dtype::float64)},
      {"stopped", stop_gradient(x) * slice(x, {0}, {1})},
      {"integers", cast(cast(x + 2, Dtype::int64), Dtype::float64) * slice(x, {2}, {3})},
      {"checkpoint", checkpoint([](const Vars& in) { return Vars{sin(slice(in[0], {1}, {4}))}; }, {x})[0]},
  };
  for (const auto& each : of_x) {
    CAPTURE(each.first);
    const Var& y = each.second;
    CHECK(places_in(jacobian_sparsity(y, x)) == nonzeros(y, x));
  }
  // Which operand this chooses depends on the point, and the pattern has both.
  CHECK(jacobian_sparsity(where(x > 1, x, flip(x, {0})), x).size() == 12);
  const std::vector<std::pair<std::string, Var>> of_m = {
      {"rows", sum(square(m), {1})},
      {"columns, kept", sum(sin(m), {0}, true)},
      {"mean", mean(square(m), {1})},
      {"var", variance(m, {0})},
      {"logsumexp", logsumexp(m, {1})},
      {"transpose", transpose(m) * 2},
      {"gather", gather(m, 0, each)},
      {"a product with itself", matmul(m, transpose(m))},
      {"layer_norm", layer_norm(m)},
      {"cumsum of columns", cumsum(square(m), 0)},
      {"tril", tril(slice(m, {0, 0}, {3, 3}))},
      {"einsum", einsum("ij,ik->ijk", m, m)},
      {"scattered", scatter_add(m, 0, each, square(m))},
  };
  for (const auto& each : of_m) {
    CAPTURE(each.first);
    const Var& y = each.second;
    CHECK(places_in(jacobian_sparsity(y, m)) == nonzeros(y, m));
  }
  // The largest element is one of its row; the pattern has all.
  CHECK(places_in(jacobian_sparsity(max(m, {1}), m)) == places_in(jacobian_sparsity(sum(m, {1}), m)));
}

TEST_CASE("the pattern of a scan follows its steps") {
  Tape tape;
  const Var x = tape.input("x", {4}, Dtype::float64);
  const auto cell = [](const Vars& inputs, const Vars& states) {
    const Var next = states[0] * sin(inputs[0]);
    return std::make_pair(Vars{next}, Vars{next});
  };
  const Var start = tape.constant(Numbers(2.0));
  for (const bool reverse : {false, true}) {
    const Scanned steps = scan(cell, {x}, {start}, {.axis = 0, .reverse = reverse, .valid = {}});
    CHECK(places_in(jacobian_sparsity(steps.outputs[0], x)) == nonzeros(steps.outputs[0], x));
    CHECK(jacobian_sparsity(steps.outputs[0], x).size() == 10);
    CHECK(places_in(hessian_sparsity(sum(steps.outputs[0]), x)).count({1, 2}) == 1);
  }
}

TEST_CASE("where the rules know nothing, every element depends on all, and no dependence is missed") {
  static const Op mixing{.name = "mixing",
                         .doc = "An op with a kernel alone.",
                         .inputs = {{"x", Accept::floating}},
                         .shape = [](const OpCall& call) { return std::vector<ValueType>{call.inputs[0]}; },
                         .lowering = {.kernel = [](const KernelCall&) { return Kernel{}; }}};
  Tape tape;
  const Var x = tape.input("x", {3}, Dtype::float64), index = tape.input("index", {2}, Dtype::int64);
  const Var mixed = apply(mixing, {slice(x, {1}, {open_end})})[0];
  CHECK(jacobian_sparsity(mixed, x) == pattern_of(2, 3, {{0, 1}, {0, 2}, {1, 1}, {1, 2}}));
  CHECK(jacobian_sparsity(take(x, index), x).size() == 6);
  CHECK(jacobian_sparsity(index_add(x, 0, index, slice(x, {0}, {2})), x).size() == 9);
}

TEST_CASE("custom_gradient: the pattern is that of the rule, transposed") {
  Tape tape;
  const Var both = tape.input("both", {5}, Dtype::float64), x = both.at(Slice(0, 3)), y = both.at(Slice(3));
  const auto pass = [](const Vars&, const Vars&, const Vars& cotangents) { return cotangents; };
  const Var rounded = custom_gradient([](const Vars& v) { return Vars{floor(v[0])}; }, pass, {x})[0];
  CHECK(jacobian_sparsity(rounded, x) == pattern_of(3, 3, {{0, 0}, {1, 1}, {2, 2}}));
  // Results [2] and [3] of inputs [3] and [2]: the first takes from the second input in reverse, the second sums both.
  const auto f = [](const Vars& v) { return Vars{flip(v[1], {0}), v[0] * v[0] + sum(v[1])}; };
  const auto rule = [&](const Vars& v, const Vars&, const Vars& c) {
    return Vars{2 * v[0] * c[1], flip(c[0], {0}) + broadcast_to(sum(c[1]), {2})};
  };
  const Vars results = custom_gradient(f, rule, {x, y});
  for (const Var& each : {results[0], results[1], sin(results[1]) * x, concat(results, 0)})
    CHECK(places_in(jacobian_sparsity(each, both)) == nonzeros(each, both));
  CHECK(jacobian_sparsity(results[0], both) == pattern_of(2, 5, {{0, 4}, {1, 3}}));
}

TEST_CASE("values with a derivative of their own depend on all that it reads, and huge loops are followed or refused") {
  Tape tape;
  const Var x = tape.input("x", {3}, Dtype::float64);
  const Var root = implicit_root([&](const Var& v) { return v * v - exp(x); }, ones_like(x));
  CHECK(jacobian_sparsity(root, x).size() == 9);
  const auto goes_on = [](const Vars& states) { return sum(states[0]) < 100; };
  const auto grows = [](const Vars& states) { return Vars{states[0] * states[0] + 1}; };
  for (const std::int64_t steps : {std::int64_t{10'000'000}, std::int64_t{1} << 40}) {
    const Var y = while_loop(goes_on, grows, {x}, steps).states[0];
    CHECK(jacobian_sparsity(y, x).size() == 9);
  }
}

TEST_CASE("the pattern by an intermediate value, by itself, and by values that do not matter") {
  Tape tape;
  const Var x = tape.input("x", {3}, Dtype::float64), y = square(x), other = tape.input("other", {2}, Dtype::float64);
  CHECK(jacobian_sparsity(sin(y), y) == pattern_of(3, 3, {{0, 0}, {1, 1}, {2, 2}}));
  CHECK(jacobian_sparsity(y, y).size() == 3);
  CHECK(jacobian_sparsity(y, sin(y)).size() == 0);
  CHECK(jacobian_sparsity(y, other) == SparsityPattern{{3, 2}, {}, {}});
  const Var constant = tape.constant(spread({3}));
  CHECK(jacobian_sparsity(constant * x, constant).size() == 3);
}

TEST_CASE("the pattern of a Hessian is symmetric and has no linear parts") {
  Tape tape;
  const Var x = tape.input("x", {5}, Dtype::float64);
  const std::size_t size = tape.size();
  for (const auto f : {banded, arrow}) {
    const Var y = f(x) + sum(3 * x);
    const std::size_t before = tape.size();
    const SparsityPattern found = hessian_sparsity(y, x);
    CHECK(tape.size() == before);
    CHECK(places_in(found) == nonzeros(grad(y, {x})[0], x));
  }
  CHECK(hessian_sparsity(banded(x), x).size() == 13);
  CHECK(hessian_sparsity(sum(3 * x), x) == SparsityPattern{{5, 5}, {}, {}});
  CHECK(tape.size() > size);
}

TEST_CASE("dependences shared by many elements take little memory") {
  Tape tape;
  const Var x = tape.input("x", {1000000}, Dtype::float64);
  const Var y = slice(x, {1}, {open_end}) * slice(x, {0}, {-1});
  CHECK(jacobian_sparsity(y, x).size() == 2 * 999999);
  CHECK(jacobian_sparsity(x / sum(slice(x, {0}, {3})), x).size() == 3 * 1000000 + 999997);
}
