#include <cmath>
#include <limits>

#include "constants.hpp"
#include "golden.hpp"
#include "mapped_rows.hpp"
#include "xtape/derivatives.hpp"
#include "xtape/ops/losses.hpp"

using namespace xtape;

namespace {

xt::xarray<double> waves(const std::vector<std::size_t>& shape, double phase) {
  xt::xarray<double> x = xt::xarray<double>::from_shape(shape);
  std::size_t i = 0;
  for (double& each : x) each = 1.3 * std::sin(1.7 * static_cast<double>(i++) + phase);
  return x;
}

const xt::xarray<double> emissions = waves({3, 4, 3}, 0.4), transitions = waves({3, 3}, 1.1), start = waves({3}, 2.3),
                         end = waves({3}, 3.7);
const xt::xarray<std::int64_t> tags{{0, 2, 1, 1}, {2, 0, -5, 9}, {1, 1, 0, 2}};
const xt::xarray<bool> mask{{true, true, true, true}, {true, true, false, false}, {false, true, false, true}};
const std::vector<xt::xarray<double>> arguments{emissions, transitions, start, end};

Var masked(const Vars& x) {
  return x[0].tape().constant(ArrayView(mask));
}
Var tagged(const Vars& x) {
  return x[0].tape().constant(ArrayView(tags));
}
}  // namespace

TEST_CASE("op crf_score: values, gradients, any mask") {
  check_golden("ops_sequences.json", "crf_score", 1e-12);
  check_gradients([](const Vars& x) { return Vars{crf_score(x[0], tagged(x), x[1], masked(x), x[2], x[3])}; },
                  arguments);
  const auto row = [](const Vars& x) {
    return crf_score(expand_dims(x[0], 0), x[0].tape().constant(ArrayView(xt::xarray<std::int64_t>{{0, 2, 2, 1}})),
                     x[0].tape().constant(ArrayView(transitions)));
  };
  check_mapped_rows(row, {emissions});
  Tape tape;
  const Var x = tape.parameter("x", ArrayView(emissions)), w = tape.parameter("w", ArrayView(transitions));
  CHECK_THROWS_AS(fast(crf_score(x, tape.constant(ArrayView(tags)), w)), Error);  // -5 and 9 without the mask
}

TEST_CASE("op crf_log_partition: values, gradients, marginal probabilities, any mask") {
  check_golden("ops_sequences.json", "crf_log_partition", 1e-12);
  const auto all = [](const Vars& x) { return Vars{crf_log_partition(x[0], x[1], masked(x), x[2], x[3])}; };
  check_gradients(all, arguments);
  check_mapped_rows(
      [](const Vars& x) {
        return crf_log_partition(expand_dims(x[0], 0), x[0].tape().constant(ArrayView(transitions)), true,
                                 x[0].tape().constant(ArrayView(start)));
      },
      {emissions});
  Tape tape;
  tape.set_default_dtype(Dtype::float64);
  const Var x = tape.parameter("x", ArrayView(emissions)), w = tape.parameter("w", ArrayView(transitions));
  const Var m = tape.constant(ArrayView(mask)), total = crf_log_partition(x, w, m);
  const auto marginals = fast(sum(grad(sum(total), {x})[0], {-1})).to<double>();
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t k = 0; k < 4; ++k) CHECK(close(marginals(i, k), mask(i, k) ? 1 : 0, 1e-13));
  const Var along = tape.parameter("d", ArrayView(waves({3, 4, 3}, 0.9)));
  CHECK(close(fast(sum(jvp({total}, {x}, {along})[0])).as<double>()[0],
              fast(sum(grad(sum(total), {x})[0] * along)).as<double>()[0], 1e-13));
  // Forbidden transitions: with those to other tags, each tag stays.
  xt::xarray<double> apart{{0.0, -inf, -inf}, {-inf, 0.0, -inf}, {-inf, -inf, 0.0}};
  const Var of_one = crf_log_partition(x, tape.constant(ArrayView(apart)));
  CHECK(close(fast(of_one - logsumexp(sum(x, {1}), {-1})).as<double>()[1], 0, 1e-14));
  for (const double each : fast(grad(sum(of_one), {x})[0]).to<double>()) CHECK(std::isfinite(each));
}

TEST_CASE("op crf_loss: values, gradients, no steps, padding") {
  check_golden("ops_sequences.json", "crf_loss", 1e-12);
  for (const char* reduction : {"none", "mean", "sum"})
    check_gradients(
        [&](const Vars& x) { return Vars{crf_loss(x[0], tagged(x), x[1], masked(x), x[2], x[3], reduction)}; },
        arguments);
  Tape tape;
  tape.set_default_dtype(Dtype::float64);
  const Var w = tape.parameter("w", ArrayView(transitions));
  const Var none = tape.parameter("x", xt::xarray<double>::from_shape({2, 0, 3}));
  const Var no_tags = tape.constant(ArrayView(xt::xarray<std::int64_t>::from_shape({2, 0})));
  CHECK(fast(crf_loss(none, no_tags, w, true, 0.5, 0.25, "none")).to<double>() == xt::xarray<double>{0, 0});
  xt::xarray<double> padded = emissions;
  for (std::size_t c = 0; c < 3; ++c) padded(1, 2, c) = std::nan("");
  const auto second = [&](const xt::xarray<double>& given, bool gradient) {
    const Var x = tape.parameter("e", ArrayView(given));
    const Var loss = crf_loss(x, tape.constant(ArrayView(tags)), w, tape.constant(ArrayView(mask)), 0.0, 0.0, "none");
    return fast(gradient ? grad(sum(loss), {x})[0] : loss).to<double>();
  };
  CHECK(second(padded, false) == second(emissions, false));
  CHECK(second(padded, true) == second(emissions, true));
}

TEST_CASE("op crf_decode: the best tags of all, the gradient of their score, ties") {
  check_golden("ops_sequences.json", "crf_decode", 1e-12);
  check_gradients([](const Vars& x) { return Vars{crf_decode(x[0], x[1], masked(x), x[2], x[3]).second}; }, arguments,
                  false);
  for (const bool scores : {false, true})
    check_mapped_rows(
        [&](const Vars& x) {
          const auto [best, score] = crf_decode(expand_dims(x[0], 0), x[0].tape().constant(ArrayView(transitions)));
          return scores ? score : best;
        },
        {emissions});
  Tape tape;
  tape.set_default_dtype(Dtype::float64);
  const Var x = tape.parameter("x", ArrayView(emissions)), w = tape.parameter("w", ArrayView(transitions));
  const auto [best, score] = crf_decode(x, w);
  CHECK(fast(score - crf_score(x, best, w)).to<double>()(0) == doctest::Approx(0));
  CHECK(fast(crf_decode(zeros(tape, {1, 3, 2}), zeros(tape, {2, 2})).first).to<std::int64_t>() ==
        xt::xarray<std::int64_t>{{0, 0, 0}});
}

TEST_CASE("ops crf: errors") {
  Tape tape;
  const Var x = tape.input("x", {2, 5, 3}), w = tape.input("w", {3, 3}), y = tape.input("y", {2, 5}, Dtype::int32),
            m = tape.input("m", {2, 5}, Dtype::boolean), v = tape.input("v", {3});
  CHECK(crf_loss(x, y, w, m, v, v).shape() == Shape{});
  CHECK(crf_decode(x, w, m, v, v).first.type() == ValueType{Dtype::int64, {2, 5}});
  CHECK_THROWS_WITH_AS(crf_log_partition(v, w),
                       "crf_log_partition: emissions must be [b, t, tags] of at least one "
                       "tag, received (3,)",
                       ShapeError);
  CHECK_THROWS_WITH_AS(crf_score(x, y, v),
                       "crf_score: 'transitions' of shape (3,) must have shape (3, 3), [tags, tags] for emissions of "
                       "shape (2, 5, 3)",
                       ShapeError);
  CHECK_THROWS_AS(crf_loss(x, v, w), DtypeError);
  CHECK_THROWS_AS(crf_loss(x, tape.input("z", {2, 4}, Dtype::int32), w), ShapeError);
  CHECK_THROWS_AS(crf_decode(x, w, tape.input("n", {5}, Dtype::boolean)), ShapeError);
  CHECK_THROWS_AS(crf_decode(x, w, m, tape.input("u", {2})), ShapeError);
  CHECK_THROWS_AS(crf_loss(x, y, w, m, v, v, "token_mean"), Error);
}
