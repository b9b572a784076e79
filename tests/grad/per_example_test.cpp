// Norms of per-example gradients and clipped gradients, against gradients of one example at a time.
#include "xtape/per_example.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "mapped.hpp"
#include "per_example.hpp"
#include "xtape/grad.hpp"
#include "xtape/gradcheck.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"
#include "xtape/scan.hpp"
#include "xtape/xtensor.hpp"
#include "xview.hpp"

using namespace xtape;

namespace {
/// A loss of weights and one example.
using Loss = std::function<Var(const Vars& weights, const Vars& example)>;

/// One example of inputs whose examples are axis 0, where `mapped`.
Vars example_of(const Vars& inputs, const std::vector<bool>& mapped, std::int64_t index) {
  Vars one;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    one.push_back(mapped[i] ? squeeze(slice(inputs[i], {index}, {index + 1}), {0}) : inputs[i]);
  return one;
}

/// Checks norms and clipped gradients with a clip norm between the smallest and the largest norm. Returns the plan
/// of the norms.
Plan check_examples(const Loss& loss, const std::vector<Array>& weights, const std::vector<Array>& inputs,
                    std::vector<bool> mapped = {}, double tolerance = 1e-10) {
  Tape tape;
  tape.set_default_dtype(Dtype::float64);
  Vars of_weights, of_inputs;
  for (std::size_t i = 0; i < weights.size(); ++i)
    of_weights.push_back(tape.parameter("w" + std::to_string(i), weights[i]));
  for (const Array& input : inputs) of_inputs.push_back(tape.constant(input));
  mapped.resize(inputs.size(), true);
  VmapOptions options;
  for (const bool each : mapped) options.in_axes.push_back(each ? std::optional<std::int64_t>(0) : std::nullopt);
  const std::int64_t count = inputs[0].shape()[0];

  Doubles losses = xt::zeros<double>({count}), norms = losses;
  std::vector<std::vector<Doubles>> gradients;
  for (std::int64_t b = 0; b < count; ++b) {
    const Var value = loss(of_weights, example_of(of_inputs, mapped, b));
    Vars all = grad(value, of_weights);
    all.push_back(value);
    for (Var& each : all) each = cast(each, Dtype::float64);
    Player player(tape, all);
    player.play({}, 0);
    gradients.emplace_back();
    double total = 0;
    for (std::size_t i = 0; i < of_weights.size(); ++i) {
      gradients.back().push_back(player.view(all[i]).to<double>());
      total += squares(gradients.back().back());
    }
    norms(b) = std::sqrt(total);
    losses(b) = player.view(all.back()).to<double>()();
  }

  const ExampleLoss of_example = [&](const Vars& example) { return loss(of_weights, example); };
  const PerExampleNorms found = per_example_norms(of_example, of_weights, of_inputs, options);
  Player player(tape, {found.norms, found.losses});
  player.play({}, 0);
  check_near(player.view(found.norms).to<double>(), norms, tolerance);
  check_near(player.view(found.losses).to<double>(), losses, tolerance);

  double smallest = INFINITY, largest = 0;
  for (const double norm : norms) {
    smallest = std::min(smallest, norm);
    largest = std::max(largest, norm);
  }
  const double limit = count == 0 ? 1 : (smallest + largest) / 2;
  const ClippedGradients clipped = clipped_gradients(of_example, of_weights, of_inputs, limit, options);
  Vars all = clipped.gradients;
  all.push_back(clipped.norms);
  all.push_back(clipped.losses);
  Player clipping(tape, all);
  clipping.play({}, 0);
  check_near(clipping.view(clipped.norms).to<double>(), norms, tolerance);
  check_near(clipping.view(clipped.losses).to<double>(), losses, tolerance);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    CAPTURE(i);
    CHECK(clipped.gradients[i].type() == of_weights[i].type());
    Doubles sum = xt::zeros<double>(Doubles::shape_type(weights[i].shape().begin(), weights[i].shape().end()));
    for (std::int64_t b = 0; b < count; ++b)
      sum += gradients[static_cast<std::size_t>(b)][i] * std::min(1.0, limit / norms(b));
    check_near(clipping.view(clipped.gradients[i]).to<double>(), sum, tolerance);
  }
  return player.plan();
}

Var dense_loss(const Vars& w, const Vars& x) {
  return sum(square(tanh(matmul(x[0], w[0]) + w[1]) - 1));
}

/// A table with `rows` rows that embeds tokens and gives their logits; a table of positions.
Loss language_model() {
  return [](const Vars& w, const Vars& x) {
    const Var h = take(w[0], x[0]) + take(w[1], iota(x[0].tape(), {x[0].size(0)}));
    return cross_entropy_sum(einsum("td,vd->tv", layer_norm(h, w[2], w[3]), w[0]), x[1]).first * 0.25;
  };
}
}  // namespace

TEST_CASE("per-example: products with many rows, few rows and none") {
  for (const std::size_t rows : {1, 2, 9}) {
    CAPTURE(rows);
    check_examples(dense_loss, {filled({3, 4}), filled({4})}, {filled({5, rows, 3}, 1)});
    check_examples(dense_loss, {filled({30, 40}), filled({40})}, {filled({3, rows, 30}, 1)});
  }
  check_examples(dense_loss, {filled({3, 4}), filled({4})}, {filled({5, 3}, 1)});
  check_examples(dense_loss, {filled({30, 40}), filled({40})}, {filled({5, 2, 3, 30}, 1)});
}

TEST_CASE("per-example: an operand that is the same for all examples") {
  const Loss loss = [](const Vars& w, const Vars& x) { return sum(tanh(matmul(x[1], w[0]) * x[0])); };
  for (const std::size_t width : {3, 40})
    check_examples(loss, {filled({width, 20})}, {filled({4, 2, 20}), filled({2, width})}, {true, false});
}

TEST_CASE("per-example: products with heads, that are transposed, and of one weight with itself") {
  const Loss heads = [](const Vars& w, const Vars& x) { return sum(tanh(einsum("thi,hio->tho", x[0], w[0]))); };
  for (const std::size_t width : {3, 40}) check_examples(heads, {filled({2, width, 30})}, {filled({4, 3, 2, width})});
  const Loss views = [](const Vars& w, const Vars& x) {
    return sum(tanh(matmul(x[0], reshape(transpose(w[0], {1, 0}), {30, 40}))));
  };
  check_examples(views, {filled({60, 20})}, {filled({4, 3, 30})});
  check_examples(views, {filled({60, 20})}, {filled({4, 70, 30})});
  const Loss twice = [](const Vars& w, const Vars& x) {
    return sum(square(matmul(tanh(matmul(x[0], w[0])), transpose(w[0])))) * 0.5;
  };
  check_examples(twice, {filled({30, 40})}, {filled({4, 3, 30})});
  check_examples(twice, {filled({3, 4})}, {filled({4, 30, 3})});
  const Loss itself = [](const Vars& w, const Vars& x) { return sum(matmul(matmul(w[0], w[0]), x[0])); };
  check_examples(itself, {filled({6, 6})}, {filled({4, 6})});
  const Loss alone = [](const Vars& w, const Vars& x) { return sum(square(w[0])) + sum(x[0] * w[0]); };
  check_examples(alone, {filled({6})}, {filled({4, 6})});
}

TEST_CASE("per-example: more uses of one weight than are paired") {
  const Loss loss = [](const Vars& w, const Vars& x) {
    Var h = x[0];
    for (int i = 0; i < 12; ++i) h = tanh(matmul(h, w[0]));
    return sum(h);
  };
  check_examples(loss, {filled({20, 20})}, {filled({3, 2, 20})});
}

TEST_CASE("per-example: tables that are looked up, also tied to the product of the logits") {
  for (const std::size_t rows : {5, 200}) {
    CAPTURE(rows);
    check_examples(language_model(), {filled({rows, 8}), filled({10, 8}), filled({8}), filled({8})},
                   {mapped::integers({4, 6}, 5), mapped::integers({4, 6}, 3)});
  }
  const Loss columns = [](const Vars& w, const Vars& x) { return sum(tanh(take(w[0], x[0], 1) * x[1])); };
  for (const std::size_t size : {4, 300})
    check_examples(columns, {filled({3, size, 2})}, {mapped::integers({4, 5}, 4), filled({4, 3, 5, 2})});
  const Loss one = [](const Vars& w, const Vars& x) { return sum(square(take(w[0], x[0]))); };
  check_examples(one, {filled({300, 4})}, {mapped::integers({4}, 7)});
  const Loss gathered = [](const Vars& w, const Vars& x) { return sum(square(gather(w[0], 1, x[0]))); };
  check_examples(gathered, {filled({2, 50})}, {mapped::integers({4, 2, 3}, 7)});
}

TEST_CASE("per-example: norms, attention and recurrences") {
  const Loss norms = [](const Vars& w, const Vars& x) {
    return sum(tanh(rms_norm(layer_norm(x[0], w[0], w[1]), w[2])));
  };
  check_examples(norms, {filled({5}), filled({5}), filled({5})}, {filled({4, 3, 5})});
  check_examples(norms, {filled({5}), filled({5}), filled({5})}, {filled({4, 5})});
  const Loss attention = [](const Vars& w, const Vars& x) {
    const Var q = einsum("bti,ihd->bthd", x[0], w[0]), k = einsum("bti,ihd->bthd", x[0], w[1]);
    const Var scores = masked_fill(einsum("bqhd,bkhd->bhqk", q, k) * 0.3, causal_mask(x[0], 1), -INFINITY);
    return sum(square(einsum("bhqk,bkhd->bqhd", softmax(scores), k)));
  };
  check_examples(attention, {filled({6, 2, 3}), filled({6, 2, 3})}, {filled({4, 1, 5, 6})});
  const Loss recurrent = [](const Vars& w, const Vars& x) {
    ScanOptions along_first;
    along_first.axis = 0;
    const ScanFunction cell = [&](const Vars& slices, const Vars& states) {
      const Var h = tanh(matmul(slices[0], w[0]) + matmul(states[0], w[1]) + w[2]);
      return std::make_pair(Vars{h}, Vars{h});
    };
    return sum(square(scan(cell, {x[0]}, {zeros(x[0].tape(), {1, 7})}, along_first).states[0]));
  };
  check_examples(recurrent, {filled({6, 7}), filled({7, 7}), filled({7})}, {filled({4, 5, 1, 6})});
}

TEST_CASE("per-example: nothing of the size of the weights for each example where there are few rows") {
  const Plan plan = check_examples(language_model(), {filled({3000, 64}), filled({4, 64}), filled({64}), filled({64})},
                                   {mapped::integers({6, 4}, 2000), mapped::integers({6, 4}, 2000)});
  CHECK(plan.peak_bytes() < 6 * 3000 * 64 * sizeof(double));
}

TEST_CASE("per-example: no examples, and examples without rows") {
  check_examples(dense_loss, {filled({3, 4}), filled({4})}, {filled({0, 2, 3})});
  check_examples(dense_loss, {filled({3, 4}), filled({4})}, {filled({5, 1, 3}, 0)});
  Tape tape;
  const Var w = tape.constant(filled({3, 4})), x = tape.input("x", {2, 0, 3}, Dtype::float64);
  const ClippedGradients found =
      clipped_gradients([&](const Vars& one) { return sum(square(matmul(one[0], w))); }, {w}, {x}, 1.0);
  Player player(tape, {found.norms, found.gradients[0]});
  player.play({Feed(x, ArrayView(Array(Dtype::float64, {2, 0, 3})))}, 0);
  CHECK(squares(player.view(found.norms).to<double>()) == 0);
  CHECK(squares(player.view(found.gradients[0]).to<double>()) == 0);
}

TEST_CASE("per-example: a gradient of zero, whose norm is 0, is not clipped to NaN") {
  Tape tape;
  const Var w = tape.constant(filled({3, 4})), x = tape.constant(Array(Dtype::float64, {2, 3}));
  const ClippedGradients found =
      clipped_gradients([&](const Vars& one) { return sum(square(matmul(one[0], w))); }, {w}, {x}, 1.0);
  Player player(tape, {found.gradients[0]});
  player.play({}, 0);
  CHECK(squares(player.view(found.gradients[0]).to<double>()) == 0);
}

TEST_CASE("per-example: dropout draws once for the norms and the gradients") {
  Tape tape;
  const Var w = tape.constant(filled({30, 40})), x = tape.constant(filled({1, 3, 30}));
  const ClippedGradients found =
      clipped_gradients([&](const Vars& one) { return sum(square(dropout(matmul(one[0], w), 0.5))); }, {w}, {x}, 1e6);
  Player player(tape, {found.gradients[0], found.norms});
  for (const std::uint64_t step : {0, 1, 2}) {
    player.play({}, step);
    const double norm = std::sqrt(squares(player.view(found.gradients[0]).to<double>()));
    CHECK(player.view(found.norms).to<double>()(0) == doctest::Approx(norm).epsilon(1e-12));
  }
}

TEST_CASE("per-example: float32, and examples along another axis") {
  Tape tape;
  const Var w = cast(tape.constant(filled({30, 40})), Dtype::float32);
  const Var x = cast(tape.constant(filled({5, 30, 3})), Dtype::float32);
  const auto loss = [&](const Vars& one) { return sum(square(tanh(matmul(one[0], w)))); };
  const PerExampleNorms found = per_example_norms(loss, {w}, {transpose(x, {2, 1, 0})}, {.in_axes = {2}});
  CHECK(found.norms.type() == ValueType{Dtype::float32, {5}});
  const Var dense = vmap([&](const Vars& one) { return grad(loss({transpose(one[0])}), {w}); }, {x})[0];
  const Var expected = sqrt(sum(square(cast(dense, Dtype::float64)), {1, 2}));
  const Var wide = cast(found.norms, Dtype::float64);
  Player player(tape, {wide, expected});
  player.play({}, 0);
  check_near(player.view(wide).to<double>(), player.view(expected).to<double>(), 1e-5);
}

TEST_CASE("per-example: the norms are differentiable") {
  for (const std::int64_t width : {3, 20}) {
    const auto cubes = [](const Vars& given) {
      const auto loss = [&](const Vars& one) { return sum(square(tanh(matmul(one[0], given[1])))); };
      const Var norms = per_example_norms(loss, {given[1]}, {given[0]}).norms;
      return Vars{sum(norms * norms * norms)};
    };
    const auto size = static_cast<std::size_t>(width);
    const GradcheckReport report =
        gradcheck(cubes, std::vector<Array>{filled({2, 2, size}, 1, 0.7), filled({size, 20})});
    CHECK_MESSAGE(report.passed, report.message);
  }
}

TEST_CASE("per-example: errors leave the tape as it was") {
  Tape tape;
  const Var w = tape.input("w", {3, 4}), x = tape.input("x", {5, 2, 3}), narrow = tape.input("n", {3}, Dtype::float64);
  const auto loss = [&](const Vars& one) { return sum(matmul(one[0], w)); };
  const std::size_t size = tape.size();
  CHECK_THROWS_WITH_AS(per_example_norms(nullptr, {w}, {x}),
                       doctest::Contains("per_example_norms: the function of the loss is empty"), Error);
  CHECK_THROWS_WITH_AS(per_example_norms(loss, {}, {x}),
                       doctest::Contains("per_example_norms: needs at least one weight"), Error);
  CHECK_THROWS_WITH_AS(per_example_norms(loss, {w}, {}), doctest::Contains("needs at least one input"), Error);
  CHECK_THROWS_WITH_AS(
      per_example_norms(loss, {w}, {x}, {.in_axes = {}, .out_axes = {0, 0}, .randomness = Randomness::same}),
      doctest::Contains("out_axes"), Error);
  CHECK_THROWS_WITH_AS(per_example_norms(loss, {w, narrow}, {x}), doctest::Contains("one dtype"), DtypeError);
  CHECK_THROWS_WITH_AS(per_example_norms([&](const Vars& one) { return matmul(one[0], w); }, {w}, {x}),
                       doctest::Contains("must have no axes, got float32 (2, 4)"), ShapeError);
  CHECK_THROWS_WITH_AS(per_example_norms([&](const Vars& one) { return sum(one[0]); }, {w}, {x}),
                       doctest::Contains("no gradient reaches input 0"), Error);
  for (const double limit : {0.0, -1.0, std::nan(""), HUGE_VAL})
    CHECK_THROWS_WITH_AS(clipped_gradients(loss, {w}, {x}, limit), doctest::Contains("positive and finite"), Error);
  CHECK(tape.size() == size);
}
