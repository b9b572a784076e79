// Statistics of modules and watched values: extra plays that change nothing.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "processor_time.hpp"
#include "recurrent.hpp"
#include "tiny.hpp"
#include "train/run/metrics.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"

namespace statistics {

using namespace xtape;

namespace {
/// Two layers whose first two queries see no key, and a scan over their results.
const std::string definition = R"json({
  "xtape": 2,
  "name": "observed",
  "hyper": {"vocab_size": 11, "width": 6, "rate": 0.3, "kept": false},
  "blocks": {
    "table": {
      "hyper": {"rows": null, "width": null},
      "weights": {"weight": {"shape": ["rows", "width"], "init": "normal", "std": 0.8}},
      "inputs": ["i"],
      "result": "take(weight, i, axis=0)"
    },
    "mix": {
      "inputs": ["x"],
      "do": [
        "scores = einsum('btd,bsd->bts', x, x)",
        "weights = softmax(masked_fill(scores, iota(x.shape[1])[:, none] < 2, -inf))",
        "y = x + einsum('bts,bsd->btd', weights, x)"
      ],
      "result": "tanh(3 * dropout(y, rate))"
    },
    "cell": {
      "inputs": ["x", "h"],
      "do": ["h = tanh(x + h)"],
      "result": "h, h"
    }
  },
  "model": {
    "modules": {
      "in": {"block": "table", "rows": "vocab_size", "width": "width"},
      "mixes": {"block": "mix", "repeat": 2},
      "cell": {"block": "cell"},
      "out": {"block": "table", "rows": "vocab_size", "width": "width"}
    },
    "functions": {
      "logits": {
        "inputs": {"tokens": "int [b, t]"},
        "do": ["x = mixes(in(tokens))", "y, last = scan(cell, x, init=zeros((b, width)), axis=1)"],
        "result": "einsum('btd,vd->btv', y, out.weight)"
      },
      "loss": {
        "inputs": {"tokens": "int [b, t]", "targets": "int [b, t]"},
        "do": ["p = logits(tokens)", "total, count = cross_entropy(p, targets, ignore=-1)"],
        "result": "total, count"
      }
    }
  }
})json";

/// The recurrent model, whose cell has `rate` as a parameter and names its lines.
std::string text() {
  return recurrent::with(R"("inputs": ["x"],
      "do": [
        "scores)",
                         R"("hyper": {"rate": 0.3},
      "inputs": ["x"],
      "do": [
        "scores)",
                         definition);
}

Model model_of() {
  return Model::parse(text(), {.hyper = {}, .seed = 5}, "observed.json");
}

double largest(const Array& array) {
  double most = 0;
  for (std::int64_t i = 0; i < array.count(); ++i) most = std::max(most, std::abs(double{array.as<float>()[i]}));
  return most;
}
double mean(const Array& array) {
  double sum = 0;
  for (std::int64_t i = 0; i < array.count(); ++i) sum += std::abs(double{array.as<float>()[i]});
  return sum / static_cast<double>(array.count());
}
double share(const Array& array, const std::function<bool(float)>& holds) {
  double count = 0;
  for (std::int64_t i = 0; i < array.count(); ++i) count += holds(array.as<float>()[i]) ? 1 : 0;
  return count / static_cast<double>(array.count());
}

/// The values of the training step at `step` and their gradients by the mean loss, played by a player of their own.
struct Reference {
  Store values, gradients;
  Reference(const Model& model, const BatchArrays& batch, std::uint64_t seed, std::uint64_t step) {
    Tape tape(Mode::train);
    const Shape shape = batch.at("tokens").shape();
    const NamedVars inputs = model.inputs(tape, "loss", {{"b", shape[0]}, {"t", shape[1]}});
    RecordedLines lines;
    const NamedVars results = model.record(tape, "loss", inputs, &lines);
    const NamedVars& inside = lines.values;
    PlayerOptions options;
    options.seed = seed;
    Vars outputs, by;
    for (const auto& [name, var] : inside)
      if (var.dtype() == Dtype::float32) by.push_back(var);
    const Vars found = grad(results[0].value / cast(results[1].value, Dtype::float32), by, {.materialize_grads = true});
    outputs = by;
    outputs.insert(outputs.end(), found.begin(), found.end());
    Player player(tape, outputs, options);
    player.play({{inputs.at("tokens"), batch.at("tokens")}, {inputs.at("targets"), batch.at("targets")}}, step);
    std::size_t i = 0;
    for (const auto& [name, var] : inside) {
      if (var.dtype() != Dtype::float32) continue;
      values.add(name, Array(player.view(var)));
      gradients.add(name, Array(player.view(found[i++])));
    }
  }
};
}  // namespace

TEST_CASE("recording a function gives the values inside by the paths of modules and the names of lines") {
  const Model model = model_of();
  Tape tape(Mode::train);
  RecordedLines lines;
  model.record(tape, "loss", model.inputs(tape, "loss", {{"b", 2}, {"t", 5}}), &lines);
  const NamedVars& inside = lines.values;
  for (const char* name : {"in", "mixes.0", "mixes.1", "mixes.0.scores", "mixes.1.weights", "mixes.1.y", "cell.0",
                           "cell.1", "logits.x", "logits.y", "logits.last", "loss.p", "loss.total"})
    CHECK_MESSAGE(inside.has(name), name);
  for (const char* name : {"cell.h", "cell.x", "", "out"}) CHECK_MESSAGE(!inside.has(name), name);
  CHECK(inside.at("mixes.1.scores").shape() == Shape{2, 5, 5});
  CHECK(inside.at("cell.0").id() == inside.at("logits.y").id());
  CHECK(inside.at("mixes.1").id() == inside.at("logits.x").id());
  CHECK(inside.at("mixes.0").id() == inside.at("mixes.1.x").id());
  const std::string checkpointed = recurrent::with(R"("repeat": 2)", R"("repeat": 2, "checkpoint": true)", text());
  const Model other = Model::parse(checkpointed, {}, "observed.json");
  Tape second(Mode::train);
  RecordedLines outside;
  other.record(second, "loss", other.inputs(second, "loss", {{"b", 2}, {"t", 5}}), &outside);
  CHECK(outside.values.has("mixes.1"));
  CHECK(!outside.values.has("mixes.1.scores"));
}

TEST_CASE("statistics of modules are those of the next update's values and gradients") {
  Model model = model_of();
  const TextBatches batches = recurrent::batches_of(3, 8, false);
  TrainerOptions options = recurrent::options_of(2);
  Trainer trainer(model, batches, options);
  trainer.update();
  BatchArrays batch = batches.blank();
  batches.training(2, batch);  // two micro-batches an update
  const Reference reference(model, batch, options.seed, 2);
  const std::vector<ModuleStatistics> statistics = trainer.statistics();
  std::vector<std::string> modules;
  for (const ModuleStatistics& each : statistics) {
    CAPTURE(each.module);
    modules.push_back(each.module);
    const std::string name = each.module == "cell" ? "cell.0" : each.module;
    const Array &values = reference.values.at(name), &gradient = reference.gradients.at(name);
    const auto is_zero = [](float element) { return element == 0; };
    CHECK(each.largest == doctest::Approx(largest(values)).epsilon(1e-6));
    CHECK(each.mean == doctest::Approx(mean(values)).epsilon(1e-5));
    CHECK(each.zeros == doctest::Approx(share(values, is_zero)).epsilon(1e-6));
    CHECK(each.gradient_largest.value() == doctest::Approx(largest(gradient)).epsilon(1e-4));
    CHECK(each.gradient_mean.value() == doctest::Approx(mean(gradient)).epsilon(1e-4));
    CHECK(each.gradient_zeros.value() == doctest::Approx(share(gradient, is_zero)).epsilon(1e-6));
    const bool mixes = name.starts_with("mixes");
    CHECK(each.saturated.has_value() == mixes);
    CHECK(each.masked_rows.has_value() == mixes);
    if (!mixes) continue;
    const auto is_saturated = [](float element) { return std::abs(element) > 0.99F; };
    CHECK(each.saturated.value() == doctest::Approx(share(values, is_saturated)).epsilon(1e-6));
    CHECK(each.saturated.value() > 0);
    CHECK(each.zeros > 0.1);  // dropout
    CHECK(each.masked_rows.value() == doctest::Approx(2.0 / 8));
  }
  CHECK(modules == std::vector<std::string>{"in", "mixes.0", "mixes.1", "cell"});
}

TEST_CASE("statistics of many modules take a small multiple of the time that planning the training takes") {
  const TextBatches batches = recurrent::batches_of(1, 4);
  const int count = 1600;  // modules: if each looked through all nodes, the multiple would be above 12
  const std::string repeated = recurrent::with("\"repeat\": 2", "\"repeat\": " + std::to_string(count), text());
  Model model = Model::parse(repeated, {.hyper = {}, .seed = 5}, "observed.json");
  const double begin = processor_seconds();
  Trainer trainer(model, batches, recurrent::options_of());
  const double planned = processor_seconds();
  CHECK(trainer.statistics().size() == static_cast<std::size_t>(count) + 2);
  CHECK(processor_seconds() - planned < 8.5 * (planned - begin));
}

TEST_CASE("watched values are those of the next update") {
  Model model = model_of();
  const TextBatches batches = recurrent::batches_of(3, 8, false);
  Trainer trainer(model, batches, recurrent::options_of());
  trainer.update();
  BatchArrays batch = batches.blank();
  batches.training(1, batch);
  const Reference reference(model, batch, 9, 1);
  const std::vector<WatchedValue> values = trainer.watched({"mixes.1.scores", "mixes.0"});
  REQUIRE(values.size() == 2);
  CHECK(values[0].name == "mixes.1.scores");
  CHECK(values[0].type == "float32 (3, 8, 8)");
  const Range expected = range_of(reference.values.at("mixes.1.scores"));
  CHECK(values[0].range.min == expected.min);
  CHECK(values[0].range.max == expected.max);
  CHECK(values[1].range.zeros == range_of(reference.values.at("mixes.0")).zeros);
  CHECK_THROWS_WITH_AS(trainer.watched({"mixes.1.score"}),
                       doctest::Contains("computes no 'mixes.1.score'; did you mean 'mixes.1.scores'"),
                       DefinitionError);
}

TEST_CASE("observations change no bit of the training, also in recurrent and sharded ones") {
  struct Case {
    std::string definition;
    bool consecutive;
    std::int64_t accumulate, shards;
  };
  for (const Case& each :
       {Case{text(), false, 1, 1}, Case{recurrent::definition, true, 2, 1}, Case{text(), false, 1, 2}}) {
    const TextBatches batches = recurrent::batches_of(3, 8, each.consecutive);
    TrainerOptions options = recurrent::options_of(each.accumulate);
    options.shards = each.shards;
    Model plain = Model::parse(each.definition, {.hyper = {}, .seed = 5}, "observed.json");
    Model observed = Model::parse(each.definition, {.hyper = {}, .seed = 5}, "observed.json");
    Trainer first(plain, batches, options), second(observed, batches, options);
    std::vector<std::int64_t> at, watched_at;
    Trainer::Callbacks callbacks;
    callbacks.statistics = [&](std::int64_t step, const std::vector<ModuleStatistics>&) { at.push_back(step); };
    callbacks.watched = [&](std::int64_t step, const std::vector<WatchedValue>& values) {
      CHECK(values.size() == 1);
      watched_at.push_back(step);
    };
    CHECK(first.fit({.steps = 7}));
    CHECK(second.fit({.steps = 7, .statistics_every = 3, .watch_every = 2, .watch = {"loss.total"}}, callbacks));
    CHECK(recurrent::same_weights(plain.weights(), observed.weights()));
    CHECK(at == std::vector<std::int64_t>{1, 4, 7});
    CHECK(watched_at == std::vector<std::int64_t>{1, 3, 5, 7});
  }
}

TEST_CASE("an update that fails is observed, and metrics.jsonl has the statistics") {
  const tiny::Directory directory;
  const Recipe recipe = tiny::load(
      directory, {Setting::parse("schedule={\"kind\": \"constant\", \"rate\": 1e36}"), Setting::parse("clip=0"),
                  Setting::parse("hyper.slope=100"), Setting::parse("optimizer.weight_decay=0"),
                  Setting::parse("measure=[]"), Setting::parse("statistics_every=5")});
  Run run = Run::create(recipe, directory / "run");
  CHECK_THROWS_WITH_AS(run.train(), doctest::Contains("of update 2 is not finite"), TrainingError);
  const std::vector<train::Measured> lines = train::read_metrics(directory / "run/metrics.jsonl");
  REQUIRE(lines.size() == 3);  // statistics, update 1, statistics of the failure
  for (const std::size_t i : {0, 2}) {
    CHECK(lines[i].step == static_cast<std::int64_t>(i) / 2 + 1);
    CHECK(lines[i].numbers.empty());
    REQUIRE(lines[i].statistics.size() == 2);
    CHECK(lines[i].statistics[0].first == "here");
    CHECK(lines[i].statistics[0].second[0].first == "largest");
    CHECK(lines[i].statistics[0].second[0].second > (i == 0 ? 0 : 0.5));
  }
  const Recipe other = tiny::load(directory, {Setting::parse("statistics_every=5"), Setting::parse("measure=[]")});
  Run good = Run::create(other, directory / "good");
  CHECK(good.train());
  std::vector<std::int64_t> steps;
  for (const train::Measured& line : train::read_metrics(directory / "good/metrics.jsonl"))
    if (!line.statistics.empty()) steps.push_back(line.step);
  CHECK(steps == std::vector<std::int64_t>{1, 6, 11});
}

}  // namespace statistics
