#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "constants.hpp"
#include "golden.hpp"
#include "mapped_rows.hpp"
#include "xtape/derivatives.hpp"
#include "xtape/ops/losses.hpp"

using namespace xtape;

namespace {
using Labels = std::vector<std::int64_t>;

/// [t, b, classes] of irregular numbers, no probabilities.
xt::xarray<double> numbers(std::size_t t, std::size_t b, std::size_t classes) {
  xt::xarray<double> x = xt::xarray<double>::from_shape({t, b, classes});
  std::size_t i = 0;
  for (double& each : x) each = 1.3 * std::sin(1.7 * static_cast<double>(i++) + 0.4) - 1;
  return x;
}

Var integers(Tape tape, const Shape& shape, const Labels& values) {
  Array array(Dtype::int64, shape);
  std::copy(values.begin(), values.end(), array.as<std::int64_t>());
  return tape.constant(array);
}
Var lengths_of(Tape tape, const Labels& values) {
  return integers(tape, {static_cast<std::int64_t>(values.size())}, values);
}
Var integer(Tape tape, std::int64_t value) {
  return integers(tape, {}, {value});
}

/// -log of the sum over all paths of row `row` whose labels are `wanted`, by trying all.
double by_paths(const xt::xarray<double>& x, std::size_t row, std::size_t steps, const Labels& wanted,
                std::int64_t blank) {
  double total = 0;
  const std::function<void(std::size_t, std::int64_t, const Labels&, double)> walk =
      [&](std::size_t step, std::int64_t last, const Labels& labels, double logarithm) {
        if (step == steps) {
          if (labels == wanted) total += std::exp(logarithm);
          return;
        }
        for (std::size_t c = 0; c < x.shape(2); ++c) {
          const auto each = static_cast<std::int64_t>(c);
          Labels longer = labels;
          if (each != blank && each != last) longer.push_back(each);
          walk(step + 1, each, longer, logarithm + x(step, row, c));
        }
      };
  walk(0, blank, {}, 0);
  return -std::log(total);
}
}  // namespace

TEST_CASE("op ctc_loss: PyTorch's values and gradients, and sums over all paths") {
  check_golden("ops_sequences.json", "ctc_loss", 1e-10, 1e-4);
  const xt::xarray<double> x = numbers(5, 4, 3);
  const Labels targets{1, 1, 1, 2, 2, 0, 7, -3}, steps{5, 4, 3, 2}, lengths{2, 2, 1, 0};
  const auto losses = [&](const Vars& v) {
    const Tape tape = v[0].tape();
    return ctc_loss(v[0], integers(tape, {4, 2}, targets), lengths_of(tape, steps), lengths_of(tape, lengths), 0,
                    "none");
  };
  const Array y = played_on<double>(losses, {x});
  const Labels wanted[] = {{1, 1}, {1, 2}, {2}, {}};
  for (std::size_t row = 0; row < 4; ++row)
    CHECK(close(y.as<double>()[row], by_paths(x, row, static_cast<std::size_t>(steps[row]), wanted[row], 0), 1e-13));
  check_gradients([&](const Vars& v) { return Vars{losses(v)}; }, {x});
  const auto last_is_blank = [&](const Vars& v) {
    const Tape tape = v[0].tape();
    return ctc_loss(v[0], integers(tape, {4, 2}, {0, 1, 1, 0, 0, 0, 1, 1}), lengths_of(tape, steps),
                    lengths_of(tape, lengths), 2, "none");
  };
  CHECK(close(played_on<double>(last_is_blank, {x}).as<double>()[1], by_paths(x, 1, 4, {1, 0}, 2), 1e-13));
}

TEST_CASE("op ctc_loss: what pads steps and targets changes no bit") {
  const xt::xarray<double> narrow = numbers(4, 1, 3);
  xt::xarray<double> wide = xt::xarray<double>::from_shape({9, 1, 3});
  wide.fill(std::nan(""));
  for (std::size_t t = 0; t < 4; ++t)
    for (std::size_t c = 0; c < 3; ++c) wide(t, 0, c) = narrow(t, 0, c);
  const auto with = [](const xt::xarray<double>& x, const Labels& targets, bool gradient) {
    Tape tape;
    const Var v = tape.parameter("x", ArrayView(x));
    const Var labels = integers(tape, {1, static_cast<std::int64_t>(targets.size())}, targets);
    const Var loss = ctc_loss(v, labels, lengths_of(tape, {4}), lengths_of(tape, {2}), 0, "sum");
    return fast(gradient ? slice(grad(loss, {v})[0], {0}, {4}) : loss).to<double>();
  };
  for (const bool gradient : {false, true}) {
    const xt::xarray<double> plain = with(narrow, {2, 1}, gradient);
    for (const Labels& targets : {Labels{2, 1, 0, 0}, Labels{2, 1, -1, 99}, Labels{2, 1, 1, 1}}) {
      CHECK(with(narrow, targets, gradient) == plain);
      CHECK(with(wide, targets, gradient) == plain);
    }
  }
}

TEST_CASE("op ctc_loss: targets without an alignment have loss inf and gradient 0, or loss 0") {
  for (const bool zero : {false, true}) {
    Tape tape;
    const Var x = tape.parameter("x", ArrayView(numbers(3, 3, 3)));
    // Two equal labels need a blank between them.
    const Var targets = integers(tape, {3, 2}, {1, 1, 1, 2, 2, 2}), steps = lengths_of(tape, {2, 1, 3});
    const Var losses = ctc_loss(x, targets, steps, lengths_of(tape, {2, 2, 2}), 0, "none", zero);
    const auto y = fast(losses).to<double>();
    CHECK(y(0) == (zero ? 0 : inf));
    CHECK(y(1) == (zero ? 0 : inf));
    CHECK(std::isfinite(y(2)));
    const auto dx = fast(grad(sum(losses), {x})[0]).to<double>();
    double of_last = 0;
    for (std::size_t t = 0; t < 3; ++t)
      for (std::size_t c = 0; c < 3; ++c) {
        CHECK(dx(t, 0, c) == 0);
        CHECK(dx(t, 1, c) == 0);
        of_last += dx(t, 2, c);
      }
    CHECK(close(of_last, -3, 1e-14));  // a path has one class at each step
  }
}

TEST_CASE("op ctc_loss: no steps, no targets, classes of probability 0") {
  Tape tape;
  const Var none = tape.parameter("x", xt::xarray<double>::from_shape({0, 2, 3}));
  const Var no_targets = integers(tape, {2, 0}, {}), one_each = integers(tape, {2, 1}, {1, 1});
  const Var zeros = lengths_of(tape, {0, 0}), counts = lengths_of(tape, {0, 1});
  CHECK(fast(ctc_loss(none, no_targets, zeros, zeros, 0, "none")).to<double>() == xt::xarray<double>{0, 0});
  CHECK(fast(ctc_loss(none, one_each, zeros, counts, 0, "none")).to<double>() == xt::xarray<double>{0, inf});
  const xt::xarray<double> impossible{{-0.5, -inf}, {-inf, -0.25}, {-0.125, -inf}};
  const Var x = tape.parameter("p", ArrayView(impossible));
  const Var loss = ctc_loss(x, integers(tape, {1}, {1}), integer(tape, 3), integer(tape, 1));
  CHECK(fast(loss).as<double>()[0] == 0.875);
  CHECK(fast(grad(loss, {x})[0]).to<double>() == xt::xarray<double>{{-1, 0}, {0, -1}, {-1, 0}});
}

TEST_CASE("op ctc_loss: one sequence, batches and vmap agree, and tangents are those of differences") {
  const xt::xarray<double> x = numbers(2, 6, 4);  // an axis of examples, then of steps
  const auto one = [](const Vars& v) {
    const Tape tape = v[0].tape();
    return ctc_loss(v[0], integers(tape, {3}, {2, 2, 1}), integer(tape, 6), integer(tape, 3));
  };
  check_mapped_rows(one, {x});
  Tape tape;
  const Var v = tape.parameter("x", ArrayView(x));
  const Var targets = integers(tape, {2, 3}, {2, 2, 1, 2, 2, 1});
  const Var steps = lengths_of(tape, {6, 6}), counts = lengths_of(tape, {3, 3});
  const Var batch = ctc_loss(transpose(v, {1, 0, 2}), targets, steps, counts, 0, "none");
  for (std::int64_t row : {0, 1}) {
    const Var alone = one({squeeze(slice(v, {row}, {row + 1}), {0})});
    CHECK(close(fast(batch).as<double>()[row] / 3, fast(alone).as<double>()[0], 1e-14));
  }
  const Var along = tape.parameter("d", ArrayView(numbers(2, 6, 4)));
  const double tangent = fast(sum(jvp({batch}, {v}, {along})[0])).as<double>()[0];
  CHECK(close(tangent, fast(sum(grad(sum(batch), {v})[0] * along)).as<double>()[0], 1e-13));
  const Var narrow = ctc_loss(transpose(cast(v, Dtype::bfloat16), {1, 0, 2}), targets, steps, counts);
  CHECK(narrow.dtype() == Dtype::bfloat16);
  CHECK(close(fast(cast(narrow, Dtype::float64)).as<double>()[0], fast(sum(batch) / 6).as<double>()[0], 0.01));
}

TEST_CASE("op ctc_loss: errors") {
  Tape tape;
  const Var x = tape.input("x", {5, 2, 4}), targets = tape.input("t", {2, 3}, Dtype::int64),
            lengths = tape.input("n", {2}, Dtype::int64);
  CHECK(ctc_loss(x, targets, lengths, lengths).shape() == Shape{});
  CHECK(ctc_loss(x, targets, lengths, lengths, 3, "none").shape() == Shape{2});
  CHECK_THROWS_WITH_AS(ctc_loss(x, targets, lengths, lengths, 4),
                       "ctc_loss: blank must be one of the 4 classes of log_probs, (5, 2, 4), got 4", Error);
  CHECK_THROWS_WITH_AS(ctc_loss(x, lengths, lengths, lengths),
                       "ctc_loss: 'targets' of shape (2,) must have shape (2, 2), the targets of each sequence of "
                       "log_probs, (5, 2, 4)",
                       ShapeError);
  CHECK_THROWS_WITH_AS(ctc_loss(x, targets, lengths, tape.input("m", {3}, Dtype::int64)),
                       "ctc_loss: 'target_lengths' of shape (3,) must have shape (2,), one length for each sequence of "
                       "log_probs, (5, 2, 4)",
                       ShapeError);
  CHECK_THROWS_AS(ctc_loss(tape.input("v", {4}), targets, lengths, lengths), ShapeError);
  CHECK_THROWS_AS(ctc_loss(x, targets, lengths, lengths, 0, "batchmean"), Error);
  CHECK_THROWS_AS(ctc_loss(x, tape.input("f", {2, 3}), lengths, lengths), DtypeError);
  const auto play = [&](const Labels& labels, std::int64_t steps, std::int64_t count) {
    const Var p = tape.parameter("p", ArrayView(numbers(5, 1, 4)));
    fast(ctc_loss(p, integers(tape, {1, 2}, labels), lengths_of(tape, {steps}), lengths_of(tape, {count})));
  };
  CHECK_NOTHROW(play({1, 3}, 5, 2));
  CHECK_THROWS_AS(play({1, 4}, 5, 2), Error);  // no class
  CHECK_THROWS_AS(play({1, -1}, 5, 2), Error);
  CHECK_THROWS_AS(play({1, 0}, 5, 2), Error);  // the blank
  CHECK_THROWS_AS(play({1, 3}, 6, 2), Error);  // too many steps
  CHECK_THROWS_AS(play({1, 3}, 5, 3), Error);  // too many targets
  CHECK_THROWS_AS(play({1, 3}, 5, -1), Error);
}
