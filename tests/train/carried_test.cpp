#include "train/trainer/carried.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "recurrent.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"

using namespace recurrent;

namespace {
/// Mean loss and last states of a batch that starts from the state `h`, or from zeros.
std::pair<double, Array> played(Model& model, const BatchArrays& batch, Array h = {}) {
  const Shape shape = batch.at("tokens").shape();
  const auto loss = model.player("loss", Mode::eval, {{"b", shape[0]}, {"t", shape[1]}});
  const Var state = loss->inputs.at("h");
  if (!h) h = Array(state.dtype(), state.shape());
  loss->player.play(
      {{loss->inputs.at("tokens"), batch.at("tokens")}, {loss->inputs.at("targets"), batch.at("targets")}, {state, h}});
  return {loss->player.scalar(loss->results.at("total")) / loss->player.scalar(loss->results.at("count")),
          Array(loss->player.view(loss->results.at("h")))};
}
}  // namespace

TEST_CASE("two windows with a carried state have the losses of one window of both") {
  Model model = model_of();
  const TextBatches halves = batches_of(3, 8);
  const TextBatches wholes = batches_of(3, 16);
  // A learning rate of zero, so that the model does not change.
  Trainer half(model, halves, options_of(1, 0));
  Trainer whole(model, wholes, options_of(1, 0));
  for (int window = 0; window < 2; ++window) {
    const double first = half.update().loss;
    const double second = half.update().loss;
    CHECK((first + second) / 2 == doctest::Approx(whole.update().loss).epsilon(1e-6));
  }
  BatchArrays batch = halves.blank();
  halves.training(1, batch);
  const double from_zeros = played(model, batch).first;
  halves.training(0, batch);
  Trainer again(model, halves, options_of(1, 0));
  CHECK(again.update().loss == doctest::Approx(played(model, batch).first).epsilon(1e-6));
  CHECK(std::abs(again.update().loss - from_zeros) > 1e-3);  // the state matters
}

TEST_CASE("an epoch starts from states of zeros") {
  Model model = model_of();
  const TextBatches batches = batches_of(3, 8);
  Trainer trainer(model, batches, options_of(1, 0));
  std::vector<double> losses;
  for (int i = 0; i < 8; ++i) losses.push_back(trainer.update().loss);
  for (std::size_t i = 0; i < 4; ++i) CHECK(losses[i] == losses[i + 4]);
  CHECK(trainer.epoch() == 2);
}

TEST_CASE("the gradient stops at the initial state of a window") {
  const TextBatches batches = batches_of(2, 8);
  const auto by_hand = [&](bool stopped) {
    Model model = model_of();
    Tape tape(Mode::train);
    Var h = tape.constant(Array(Dtype::float32, {2, 2, 6}));
    Vars sums;
    std::vector<Feed> feeds;
    std::vector<BatchArrays> windows(2);
    for (std::size_t i = 0; i < 2; ++i) {
      windows[i] = batches.blank();
      batches.training(i, windows[i]);
      NamedVars inputs;
      for (const auto& [name, array] : windows[i])
        feeds.emplace_back(inputs.add(name, tape.input(name + std::to_string(i), {2, 8}, Dtype::int64)), array);
      inputs.add("h", stopped ? stop_gradient(h) : h);
      const NamedVars results = model.record(tape, "loss", inputs);
      sums.push_back(results.at("total"));
      h = results.at("h");
    }
    Vars weights;
    for (const auto& weight : model.weights(tape)) weights.push_back(weight.value);
    const Vars gradients = grad(add(sums[0], sums[1]), weights, {.materialize_grads = true});
    Player player(tape, gradients);
    player.play(feeds);
    Store found;
    for (std::size_t i = 0; i < gradients.size(); ++i)
      found.add(model.weights()[i].name, Array(player.view(gradients[i])));
    return found;
  };
  Model model = model_of();
  const Store before = copy_of(model.weights());
  Trainer trainer(model, batches, options_of(2, 0.5));
  trainer.update();
  const Store stopped = by_hand(true);
  const Store flowing = by_hand(false);
  double from_stopped = 0;
  double from_flowing = 0;
  for (const Store::Entry& weight : model.weights())
    for (std::int64_t i = 0; i < weight.value.count(); ++i) {
      const auto of = [&](const Store& store) { return static_cast<double>(store.at(weight.name).as<float>()[i]); };
      const double gradient = (of(before) - of(model.weights())) / 0.5 * 32;  // 32 targets
      from_stopped = std::max(from_stopped, std::abs(gradient - of(stopped)));
      from_flowing = std::max(from_flowing, std::abs(gradient - of(flowing)));
    }
  CHECK(from_stopped < 1e-4);
  CHECK(from_flowing > 1e-2);
}

TEST_CASE("random blocks start from states of zeros, in training and in samples") {
  Model model = model_of();
  const TextBatches batches = batches_of(3, 8, false);
  Trainer trainer(model, batches, options_of(1, 0));
  BatchArrays batch = batches.blank();
  double mean = 0;
  for (std::uint64_t index = 0; index < 3; ++index) {
    batches.training(index, batch);
    CHECK(trainer.update().loss == doctest::Approx(played(model, batch).first).epsilon(1e-6));
    batches.validation_sample(index, batch);
    mean += played(model, batch).first / 3;
  }
  CHECK(sampled_loss(model, batches, 3) == doctest::Approx(mean).epsilon(1e-6));
  CHECK(sampled_loss(model, batches_of(3, 8, true), 3) == doctest::Approx(mean).epsilon(1e-6));
}

TEST_CASE("an evaluation in consecutive windows equals one long evaluation") {
  Model model = model_of();
  for (const std::int64_t rows : {1, 3}) {
    const Evaluation whole = evaluate(model, batches_of(rows, 49 / rows + 1, true, 160));
    CHECK(whole.tokens == 49);
    for (const std::int64_t columns : {1, 5, 8}) {
      const TextBatches batches = batches_of(rows, columns);
      const Evaluation evaluation = evaluate(model, batches);
      CHECK(evaluation.tokens == 49);
      CHECK(evaluation.loss == doctest::Approx(whole.loss).epsilon(1e-6));
      CHECK(evaluation.perplexity.value() == doctest::Approx(std::exp(whole.loss)).epsilon(1e-6));
      Trainer trainer(model, batches, options_of(1, 0));
      trainer.update();
      for (int again = 0; again < 2; ++again) CHECK(trainer.evaluate().loss == evaluation.loss);
      CHECK(std::abs(evaluate(model, batches_of(rows, columns, false)).loss - whole.loss) > 1e-4);
    }
  }
}

TEST_CASE("an update that fails does not change the states") {
  for (const std::int64_t accumulate : {1, 2}) {
    const TextBatches batches = batches_of(2, 8);
    Model straight = model_of();
    Trainer undisturbed(straight, batches, options_of(accumulate));
    Model model = model_of();
    Trainer trainer(model, batches, options_of(accumulate));
    for (Trainer* each : {&undisturbed, &trainer}) each->update();
    Array out = model.weight("out.weight");
    const Array kept = out.clone();
    std::fill_n(out.as<float>(), out.count(), 3e38F);
    CHECK_THROWS_WITH_AS(trainer.update(), doctest::Contains("einsum"), TrainingError);
    out.assign(kept);
    for (int i = 0; i < 3; ++i) CHECK(trainer.update().loss == undisturbed.update().loss);
    CHECK(same_weights(model.weights(), straight.weights()));
  }
}

namespace {
/// The state overflows at the third window of an epoch, and only then is the loss not finite.
std::string growing() {
  const std::string text =
      with(R"("result": {"total": "total", "count": "count", "h": "last"})",
           R"json("result": {"total": "total + 0 * sum(last)", "count": "count", "h": "last"})json");
  return with("logits, last = read(tokens, h)\"", "logits, last = read(tokens, tanh(h))\", \"last = h * 1e30 + 1\"",
              text);
}
}  // namespace

TEST_CASE("the search for a non-finite value starts from the states that the step started from") {
  for (const std::int64_t accumulate : {1, 3}) {
    const TextBatches batches = batches_of(2, 8);
    Model model = model_of("0", growing());
    Trainer trainer(model, batches, options_of(accumulate));
    for (std::int64_t i = 0; i < 3 / accumulate - 1; ++i) trainer.update();
    CHECK_THROWS_WITH_AS(trainer.update(), doctest::Contains("is not finite: inf in #22 mul -> float32 (2, 2, 6)"),
                         TrainingError);
  }
}

TEST_CASE("a state can be an int") {
  std::string text = with(R"("h": "last"})", R"("h": "last", "n": "n + 1"})");
  text = with(R"("targets": "int [b, t]", "h")", R"("n": "int [b]", "targets": "int [b, t]", "h")", text);
  text = with(R"("total": "total",)", R"json("total": "total + cast(sum(n), 'float')",)json", text);
  Model counting = model_of("0", text);
  Model plain = model_of();
  const TextBatches batches = batches_of(2, 8);
  Trainer with_count(counting, batches, options_of(1, 0));
  Trainer without(plain, batches, options_of(1, 0));
  for (int i = 0; i < 8; ++i)  // two rows, sixteen targets
    CHECK(with_count.update().loss == doctest::Approx(without.update().loss + 2 * (i % 6) / 16.0).epsilon(1e-6));
}

TEST_CASE("states of wrong types are errors that name them") {
  const auto refused = [](const std::string& text, const std::string& part) {
    Model model = model_of("0", text);
    const TextBatches batches = batches_of(2, 8);
    CHECK_THROWS_WITH_AS(Trainer(model, batches, options_of()), doctest::Contains(part.c_str()), DefinitionError);
    CHECK_THROWS_WITH_AS(evaluate(model, batches), doctest::Contains(part.c_str()), DefinitionError);
  };
  refused(
      with(R"("h": "last"})", R"("h": "last[0]"})"),
      "input 'h' of function 'loss' of model 'recurrent' is also a result, a state that is carried from one batch to "
      "the next; the input is float32 (2, 2, 6), the result float32 (2, 6): their types must be equal");
  refused(with(R"("h": "last"})", R"("hh": "last"})"),
          "function 'loss' of model 'recurrent' takes an input 'h', but the arrays given are tokens, targets");
  refused(with(R"("h": "last"})", R"("h": "last", "more": "last"})"),
          "has a result 'more': the results after the sum over the targets and their count must be states");
  refused(
      with(R"("h": "last"})", R"("h": "last", "targets": "targets"})"),
      "input 'targets' of function 'loss' of model 'recurrent' is also a result and thus a carried state, but the data "
      "has an array of that name");
  std::string text = with(R"("targets": "int [b, t]", "h")", R"("k": "float [many]", "targets": "int [b, t]", "h")");
  refused(with(R"("h": "last"})", R"("h": "last", "k": "k"})", text),
          "input 'k' of function 'loss' of model 'recurrent' has a size 'many', which no array of the data has");
  text = with(R"("targets": "int [b, t]", "h")", R"("k": "bool [b]", "targets": "int [b, t]", "h")");
  refused(with(R"("h": "last"})", R"("h": "last", "k": "not k"})", text),
          "it must be a float (the model is float32) or an int, not bool");
}
