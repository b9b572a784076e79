// ctc_loss and conditional random fields in the lines of a definition, with derivatives and vmap, against C++.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "definitions.hpp"
#include "xtape/ops/losses.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
const std::string losses_definition = R"json({
  "xtape": 2,
  "name": "taggers",
  "blocks": {
    "field": {
      "hyper": {"tags": null},
      "weights": {
        "transitions": {"shape": ["tags", "tags"], "init": "normal", "std": 1.0},
        "start": {"shape": ["tags"], "init": "normal", "std": 1.0},
        "end": {"shape": ["tags"], "init": "normal", "std": 1.0}
      },
      "inputs": {"emissions": "float [b, t, tags]", "y": "int [b, t]", "mask": "bool [b, t]"},
      "do": [
        "loss = crf_loss(emissions, y, transitions, mask, start, end, reduction='none')",
        "best, score = crf_decode(emissions, transitions, mask, start, end)",
        "plain = crf_log_partition(emissions, transitions, none) - crf_score(emissions, y, transitions)"
      ],
      "result": "loss, best, score, plain"
    },
    "one": {"inputs": ["logits", "targets", "steps", "count"],
            "result": "ctc_loss(log_softmax(logits), targets, steps, count, reduction='sum')"}
  },
  "model": {
    "modules": {"field": {"block": "field", "tags": 3}, "one": {"block": "one"}},
    "functions": {
      "tagged": {
        "inputs": {"emissions": "float [b, t, 3]", "y": "int [b, t]", "mask": "bool [b, t]"},
        "do": ["loss, best, score, plain = field(emissions, y, mask)", "slope = grad(sum(loss), emissions)"],
        "result": "loss, best, score, plain, slope"
      },
      "spoken": {
        "inputs": {"logits": "float [t, b, c]", "targets": "int [b, s]", "steps": "int [b]", "count": "int [b]"},
        "do": [
          "losses = ctc_loss(log_softmax(logits), targets, steps, count, 0, 'none')  # [b]",
          "slope = grad(sum(losses), logits)",
          "along = jvp(losses, logits, logits)",
          "mapped = vmap(one, logits, targets, steps, count, in_axes=(1, 0, 0, 0))"
        ],
        "result": "losses, slope, along, mapped"
      }
    }
  }
})json";

Array numbers(const Shape& shape) {
  Array array(Dtype::float64, shape);
  for (std::int64_t i = 0; i < array.count(); ++i)
    array.as<double>()[i] = 1.3 * std::sin(1.7 * static_cast<double>(i) + 0.4);
  return array;
}
Array integers(const Shape& shape, const std::vector<std::int64_t>& values) {
  Array array(Dtype::int64, shape);
  std::copy(values.begin(), values.end(), array.as<std::int64_t>());
  return array;
}
void check_same(const Array& got, const Var& wanted) {
  const auto a = got.to<double>(), b = evaluate(wanted).to<double>();
  REQUIRE(got.shape() == wanted.shape());
  CHECK(xt::allclose(a, b, 1e-12, 1e-12));
}
}  // namespace

TEST_CASE("a definition with ctc_loss: its gradient, its tangent and vmap") {
  Model model = Model::parse(losses_definition, test::in_float64());
  const Array logits = numbers({5, 2, 4}), targets = integers({2, 2}, {1, 1, 3, 2}), steps = integers({2}, {5, 3}),
              count = integers({2}, {2, 2});
  const Store found =
      model.play("spoken", {{"logits", logits}, {"targets", targets}, {"steps", steps}, {"count", count}});
  Tape tape;
  const Var x = tape.parameter("x", logits);
  const Var losses =
      ctc_loss(log_softmax(x), tape.constant(targets), tape.constant(steps), tape.constant(count), 0, "none");
  check_same(found.at("losses"), losses);
  check_same(found.at("mapped"), losses);
  const Var slope = grad(sum(losses), {x})[0];
  check_same(found.at("slope"), slope);
  check_same(found.at("along"), sum(slope * x, {0, 2}));
}

TEST_CASE("a definition with a conditional random field: the loss, its gradient, the best tags") {
  Model model = Model::parse(losses_definition, test::in_float64());
  const Array emissions = numbers({2, 4, 3}), y = integers({2, 4}, {0, 2, 1, 1, 2, 2, 0, 0});
  Array mask(Dtype::boolean, {2, 4});
  for (std::int64_t i = 0; i < 8; ++i) mask.as<bool>()[i] = i < 6;
  const Store found = model.play("tagged", {{"emissions", emissions}, {"y", y}, {"mask", mask}});
  Tape tape;
  tape.set_default_dtype(Dtype::float64);
  const NamedVars weights = model.weights(tape);
  const Var x = tape.parameter("x", emissions), w = weights.at("field.transitions"), tags = tape.constant(y);
  const Var valid = tape.constant(mask), start = weights.at("field.start"), end = weights.at("field.end");
  const Var loss = crf_loss(x, tags, w, valid, start, end, "none");
  check_same(found.at("loss"), loss);
  check_same(found.at("slope"), grad(sum(loss), {x})[0]);
  check_same(found.at("plain"), crf_log_partition(x, w) - crf_score(x, tags, w));
  const auto [best, score] = crf_decode(x, w, valid, start, end);
  CHECK(found.at("best").to<std::int64_t>() == evaluate(best).to<std::int64_t>());
  check_same(found.at("score"), score);
}
