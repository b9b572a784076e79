// What the functions of the models with recurrences, and of the Transformer that is a language model, give.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "definitions.hpp"
#include "sequence_models.hpp"
#include "source_root.hpp"

using namespace xtape;
using namespace xtape::test::sequences;
using test::language_models;
using test::load_variant;
using test::translators;
using test::Variant;
using test::transformer::first;
using test::transformer::sentences;

TEST_CASE("log_probabilities are the log-softmax of the logits of the targets shifted to the right") {
  for (const Variant& variant : {translators[4], language_models[0]}) {
    CAPTURE(variant.definition);
    const Model model = load_variant(variant);
    Given batch;
    batch.targets = sentences({3, 4}, 4, 7);
    const Values found = play(model, "log_probabilities", batch)[0];
    for (std::size_t b = 0; b < 2; ++b)
      for (std::size_t t = 0; t < 4; ++t) batch.tokens(b, t) = t == 0 ? 0 : batch.targets(b, t - 1);
    const Values expected = logits(model, batch);
    for (std::size_t b = 0; b < 2; ++b)
      for (std::size_t t = 0; t < 4; ++t) {
        double total = 0;
        for (std::size_t v = 0; v < 11; ++v) total += std::exp(expected(b, t, v));
        for (std::size_t v = 0; v < 11; ++v)
          CHECK(std::abs(found(b, t, v) - (expected(b, t, v) - std::log(total))) < 1e-13);
      }
  }
}

TEST_CASE("lstm_lm: two windows, one continuing the other, are one") {
  const Model model = load_variant(language_models[2]);
  const Given batch;
  const std::vector<Values> whole = play(model, "continued", batch);
  Given window = batch;
  window.tokens = first(batch.tokens, 1);
  const std::vector<Values> one = play(model, "continued", window);
  window.tokens = Rows::from_shape({2, 3});
  for (std::size_t b = 0; b < 2; ++b)
    for (std::size_t t = 0; t < 3; ++t) window.tokens(b, t) = batch.tokens(b, t + 1);
  window.h = one[1];
  window.c = one[2];
  const std::vector<Values> two = play(model, "continued", window);
  for (std::size_t b = 0; b < 2; ++b)
    for (std::size_t t = 0; t < 4; ++t)
      for (std::size_t v = 0; v < 11; ++v)
        CHECK(std::abs(whole[0](b, t, v) - (t == 0 ? one[0](b, 0, v) : two[0](b, t - 1, v))) < 1e-13);
  CHECK(test::same(two[1], whole[1]));
  CHECK(test::same(two[2], whole[2]));

  Given begun = batch;
  begun.h.fill(0);
  begun.c.fill(0);
  CHECK(test::same(play(model, "continued", begun)[0], logits(model, begun)));
  CHECK_FALSE(test::same(whole[0], logits(model, begun)));
  const std::vector<Values> loss = play(model, "loss", batch);
  CHECK(test::same(loss[2], whole[1]));
  CHECK(test::same(loss[3], whole[2]));
}

TEST_CASE("sequence models: the losses, smoothed and plain, and the accuracy, by hand") {
  for (const bool excludes : {false, true})
    for (Variant variant : {translators[1], translators[2], translators[4]}) {
      CAPTURE(variant.definition);
      variant.hyper.insert(variant.hyper.end(),
                           {{"label_smoothing", "0.3"}, {"smoothing_excludes", excludes ? "0" : "-1"}});
      const Model model = load_variant(variant);
      Given batch;
      const Values found = logits(model, batch);
      batch.targets(0, 1) = std::max_element(&found(0, 1, 0), &found(0, 1, 0) + 11) - &found(0, 1, 0);  // one is right
      const test::transformer::Sums sums = test::transformer::sums_by_hand(found, batch.targets, excludes);
      REQUIRE(sums.count == 7);
      CHECK(play(model, "loss", batch)[0]() == doctest::Approx(sums.smoothed).epsilon(1e-12));
      CHECK(play(model, "loss", batch)[1]() == 7);
      CHECK(play(model, "plain_loss", batch)[0]() == doctest::Approx(sums.plain).epsilon(1e-12));
      CHECK(play(model, "plain_loss", batch)[1]() == 7);
      CHECK(sums.right > 0);
      CHECK(play(model, "accuracy", batch)[0]() == sums.right);
      CHECK(play(model, "accuracy", batch)[1]() == 7);
    }
}

TEST_CASE("sequence models: attention weights sum to 1, and are 0 where something is hidden") {
  for (const Variant& variant : {translators[1], translators[3], translators[4], language_models[0]}) {
    CAPTURE(variant.definition);
    const Values found = play(load_variant(variant), "attention", Given())[0];
    const bool translates = variant.definition != "transformer_lm";
    const std::size_t heads = variant.definition == "gru_attention" ? 1 : 2, keys = translates ? 5 : 4;
    CHECK(found.shape() == Values::shape_type{translates ? 1UL : 2UL, 2, heads, 4, keys});
    for (std::size_t i = 0; i < found.size(); i += keys) {
      const std::size_t place = i / keys % 4, row = i / keys / 4 / heads % 2;
      double sum = 0;
      for (std::size_t key = 0; key < keys; ++key) {
        sum += found.flat(i + key);
        CHECK((found.flat(i + key) == 0) == (translates ? row == 1 && key >= 3 : key > place));
      }
      CHECK(std::abs(sum - 1) < 1e-14);
    }
  }
}

TEST_CASE("transformer_lm: more tokens than max_positions are refused") {
  const auto refusal = [](const char* most) {
    return test::error_of([&] { logits(load_variant({"transformer_lm", {{"max_positions", most}}}), Given()); });
  };
  CHECK(refusal("4").empty());
  CHECK(refusal("3").find("more tokens than max_positions") != std::string::npos);
}

TEST_CASE("recent, previous and causal_convolution: the values of the last positions, zeros before the first") {
  Model model = Model::parse(R"json({"xtape": 2, "name": "recent", "use": [")json" + source_root() +
                                 R"json(/models/blocks/recent.json"], "model": {"modules": {
    "recent": {"block": "recent", "size": 3}, "before": {"block": "previous"}, "far": {"block": "previous", "distance": 4},
    "conv": {"block": "causal_convolution", "width": 2, "size": 3}}, "functions": {
    "f": {"inputs": {"x": "float [b, t, 2]"},
          "result": {"recent": "recent(x)", "before": "before(x)", "far": "far(x)", "conv": "conv(x)"}}}}})json",
                             test::in_float64());
  Values x = xt::cos(xt::arange<double>(12)), weight = xt::sin(xt::arange<double>(6));
  x.reshape({2, 3, 2});
  weight.reshape({2, 1, 3});
  const Values bias{0.5, -0.25};
  model.weight("conv.weight").assign(ArrayView(weight));
  model.weight("conv.bias").assign(ArrayView(bias));
  const std::vector<Values> found = test::play(model, "f", {{"b", 2}, {"t", 3}}, {ArrayView(x)});
  const auto at = [&](std::size_t b, std::size_t t, std::size_t back, std::size_t d) {
    return t < back ? 0 : x(b, t - back, d);
  };
  for (std::size_t b = 0; b < 2; ++b)
    for (std::size_t t = 0; t < 3; ++t)
      for (std::size_t d = 0; d < 2; ++d) {
        double sum = bias(d);
        for (std::size_t k = 0; k < 3; ++k) {
          CHECK(found[0](b, t, d, k) == at(b, t, 2 - k, d));
          sum += weight(d, 0, k) * at(b, t, 2 - k, d);
        }
        CHECK(found[1](b, t, d) == at(b, t, 1, d));
        CHECK(found[2](b, t, d) == 0);
        CHECK(std::abs(found[3](b, t, d) - sum) < 1e-14);
      }
}
