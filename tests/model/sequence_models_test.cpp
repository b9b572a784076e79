// Models with recurrences, and the Transformer that is a language model: playing, padding, causality, batches, dropout.
#include "sequence_models.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "xtape/xtensor.hpp"

using namespace xtape;
using namespace xtape::test::sequences;
using test::load_variant;
using test::translators;
using test::translators_and_language_models;
using test::Variant;
using test::transformer::difference;
using test::transformer::first;
using test::transformer::row;
using test::transformer::sentences;

namespace {
/// The mean loss alone, recorded once.
class Loss {
 public:
  explicit Loss(const Model& model, Mode mode = Mode::eval) : tape_(mode) {
    const NamedVars inputs = model.inputs(tape_, "loss", sizes(model, "loss", batch_));
    for (const auto& [name, var] : inputs) feeds_.emplace_back(var, input_of(batch_, name));
    const NamedVars results = model.record(tape_, "loss", inputs);
    mean_ = results[0].value / cast(results[1].value, Dtype::float64);
    player_.emplace(tape_, Vars{mean_});
  }
  double at(std::uint64_t step) {
    player_->play(feeds_, step);
    return player_->scalar(mean_);
  }

 private:
  const Given batch_;
  Tape tape_;
  std::vector<Feed> feeds_;
  Var mean_;
  std::optional<Player> player_;
};

/// The mean loss, then its gradients by all weights, drawn at `step`.
std::vector<Values> gradients_of(const Model& model, const Passes& passes, Mode mode, std::uint64_t step = 2) {
  const Given batch;
  Tape tape(mode);
  const NamedVars inputs = model.inputs(tape, "loss", sizes(model, "loss", batch));
  const Vars outputs = test::mean_loss_and_gradients(model, tape, inputs);
  std::vector<ArrayView> views;
  for (const auto& input : inputs) views.push_back(input_of(batch, input.name));
  std::vector<Array> kept;  // as the model's dtype
  std::vector<Feed> feeds;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Array& array = kept.emplace_back(inputs[i].value.dtype(), views[i].shape());
    for (std::int64_t k = 0; k < array.count(); ++k)
      if (array.dtype() == Dtype::int64)
        array.as<std::int64_t>()[k] = views[i].as<std::int64_t>()[k];
      else if (array.dtype() == Dtype::float64)
        array.as<double>()[k] = views[i].as<double>()[k];
      else
        array.as<float>()[k] = static_cast<float>(views[i].as<double>()[k]);
    feeds.emplace_back(inputs[i].value, array);
  }
  PlayerOptions options;
  options.passes = passes;
  options.seed = 9;
  Player player(tape, outputs, options);
  player.play(feeds, step);
  std::vector<Values> found;
  for (const Var& output : outputs)
    if (output.dtype() == Dtype::float64)
      found.push_back(player.value<double>(output));
    else
      found.push_back(xt::cast<double>(player.value<float>(output)));
  return found;
}

void check_close(const std::vector<Values>& a, const std::vector<Values>& b, double tolerance) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    REQUIRE(a[i].shape() == b[i].shape());
    double scale = 0, worst = 0;
    for (std::size_t k = 0; k < a[i].size(); ++k) {
      scale = std::max(scale, std::abs(b[i].flat(k)));
      worst = std::max(worst, std::abs(a[i].flat(k) - b[i].flat(k)));
    }
    CAPTURE(i);
    CHECK(worst <= tolerance * (1 + scale));
  }
}

Variant with_dropout(Variant variant) {
  variant.hyper.emplace_back("dropout_rate", "0.3");
  return variant;
}
}  // namespace

TEST_CASE("sequence models: optimised playing agrees with the reference") {
  for (const Variant& variant : translators_and_language_models())
    for (const Mode mode : {Mode::eval, Mode::train}) {
      CAPTURE(variant.definition);
      const Model precise = load_variant(with_dropout(variant)),
                  narrow = load_variant(with_dropout(variant), Dtype::float32);
      const std::vector<Values> expected = gradients_of(precise, Passes::reference(), mode);
      check_close(gradients_of(precise, Passes(), mode), expected, 1e-12);
      if (mode == Mode::train) check_close(gradients_of(narrow, Passes(), mode), expected, 5e-5);
    }
}

TEST_CASE("sequence models: gradients are those of finite differences") {
  for (const Variant& variant : translators_and_language_models()) {
    const Model model = load_variant(variant);
    const std::vector<Values> exact = gradients_of(model, Passes(), Mode::eval);
    Loss loss(model);
    CHECK(loss.at(0) == doctest::Approx(exact[0]()).epsilon(1e-13));
    const auto& entries = model.weights();
    for (std::size_t i = 0; i < entries.size(); ++i) {
      double* weight = Array(entries[i].value).as<double>();
      const std::size_t at = exact[i + 1].size() / 2;
      const double before = weight[at];
      weight[at] = before + 1e-5;
      const double above = loss.at(0);
      weight[at] = before - 1e-5;
      const double below = loss.at(0);
      weight[at] = before;
      CAPTURE(variant.definition);
      CAPTURE(entries[i].name);
      CHECK(std::abs((above - below) / 2e-5 - exact[i + 1].flat(at)) < 1e-8);
    }
  }
}

TEST_CASE("sequence models: a later token changes nothing before it, an earlier one does; nor does padding behind") {
  for (const Variant& variant : translators_and_language_models()) {
    CAPTURE(variant.definition);
    const Model model = load_variant(variant);
    Given batch;
    const Values before = logits(model, batch);
    batch.tokens(1, 2) = 1 + batch.tokens(1, 2) % 10;
    const Values after = logits(model, batch);
    CHECK(difference(before, 1, after, 1, 2) == 0);
    CHECK(difference(before, 1, after, 1, 3) > 1e-6);
    CHECK(difference(before, 0, after, 0, 4) == 0);
    batch.tokens = Given().tokens;
    batch.tokens(1, 0) = 1 + batch.tokens(1, 0) % 10;
    const Values last = logits(model, batch);
    double moved = 0;
    for (std::size_t v = 0; v < 11; ++v) moved = std::max(moved, std::abs(before(1, 3, v) - last(1, 3, v)));
    CHECK(moved > 1e-6);

    Given padded;
    padded.source = sentences({5, 3}, 8, 1);
    padded.tokens = sentences({3, 4}, 6, 2);
    padded.targets = sentences({3, 4}, 6, 7);
    for (std::int64_t& target : padded.targets)
      if (target == 0) target = -1;
    CHECK(difference(before, 1, logits(model, padded), 1, 4) < 1e-13);
    const std::vector<Values> loss = play(model, "loss", Given()), same = play(model, "loss", padded);
    CHECK(std::abs(loss[0]() - same[0]()) < 1e-12);
    CHECK(loss[1]() == 7);
    CHECK(same[1]() == 7);
  }
}

TEST_CASE("sequence models: a row of a batch comes out as it does alone") {
  for (const Variant& variant : translators_and_language_models()) {
    CAPTURE(variant.definition);
    const Model model = load_variant(variant);
    const Given batch;
    Given alone;
    alone.source = first(row(batch.source, 1), 3);
    alone.tokens = row(batch.tokens, 1);
    CHECK(difference(logits(model, alone), 0, logits(model, batch), 1, 4) < 1e-13);
  }
}

TEST_CASE("sequence models: every token of the source matters at every place, and padding alone gives finite logits") {
  for (const Variant& variant : translators) {
    CAPTURE(variant.definition);
    const Model model = load_variant(variant);
    const Values before = logits(model, Given());
    for (std::size_t place = 0; place < 5; ++place) {
      Given batch;
      batch.source(0, place) = 1 + batch.source(0, place) % 10;
      const Values after = logits(model, batch);
      for (std::size_t t = 0; t < 4; ++t) {
        double moved = 0;
        for (std::size_t v = 0; v < 11; ++v) moved = std::max(moved, std::abs(before(0, t, v) - after(0, t, v)));
        CHECK(moved > 1e-8);
      }
    }
    Given nothing;
    nothing.source.fill(0);
    for (const double value : logits(model, nothing)) CHECK(std::isfinite(value));
  }
}

TEST_CASE("sequence models: dropout is for training alone, and drawn by the step") {
  for (const Variant& variant : translators_and_language_models()) {
    CAPTURE(variant.definition);
    const Model model = load_variant(with_dropout(variant));
    Loss train(model, Mode::train), eval(model), without(load_variant(variant));
    const double first_step = train.at(1);
    CHECK(std::abs(first_step - train.at(2)) > 1e-6);
    CHECK(std::abs(first_step - eval.at(1)) > 1e-6);
    CHECK(first_step == Loss(model, Mode::train).at(1));
    CHECK(eval.at(1) == without.at(2));
  }
}
