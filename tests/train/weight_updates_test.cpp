// Weights that blocks update themselves: running statistics, in training, checkpoints and on several ranks.
#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "error_of.hpp"
#include "recurrent.hpp"
#include "source_root.hpp"
#include "thread_ranks.hpp"
#include "tiny.hpp"

namespace updating {

using namespace xtape;
using test::error_of;

namespace {
constexpr std::int64_t channels = 3, length = 4;

const std::string normed = R"json({
  "xtape": 2, "name": "normed", "use": ["blocks/norm.json", "blocks/linear.json"],
  "model": {
    "modules": {"norm": {"block": "batch_norm", "channels": 3}, "out": {"block": "linear", "in": 12, "out": 2}},
    "functions": {
      "logits": {"inputs": {"x": "float [b, 3, 4]"}, "result": "out(rearrange(norm(x), 'b c n -> b (c n)'))"},
      "loss": {
        "inputs": {"x": "float [b, 3, 4]", "label": "int [b]"},
        "do": ["total, count = cross_entropy(logits(x), label)"],
        "result": "total, count"
      }
    }
  }
})json";

Model model_of(const std::string& text = normed) {
  return Model::parse(text, {.hyper = {}, .seed = 5}, source_root() + "/models/normed.json");
}

/// Batches of random rows; that of an index is always the same.
class Rows : public Batches {
 public:
  explicit Rows(std::int64_t rows, float scale = 1) : rows_(rows), scale_(scale) {}
  std::int64_t rows() const override { return rows_; }
  std::int64_t columns() const override { return 1; }
  BatchArrays blank() const override {
    return {{"x", Array(Dtype::float32, {rows_, channels, length})}, {"label", Array(Dtype::int64, {rows_})}};
  }
  void training(std::uint64_t index, BatchArrays& batch) const override {
    std::mt19937 random(static_cast<unsigned>(index) + 1);
    std::normal_distribution<float> normal;
    for (std::int64_t i = 0; i < rows_ * channels * length; ++i)
      batch.at("x").as<float>()[i] = scale_ * (normal(random) * static_cast<float>(1 + i % 5) + 2);
    for (std::int64_t i = 0; i < rows_; ++i) batch.at("label").as<std::int64_t>()[i] = (i + 1) % 2;
  }
  std::int64_t validation_batches() const override { return 1; }
  void validation(std::int64_t, BatchArrays& batch) const override { training(1000, batch); }
  void validation_sample(std::uint64_t, BatchArrays& batch) const override { training(1000, batch); }

 private:
  std::int64_t rows_;
  float scale_;
};

struct Moments {
  double mean = 0, unbiased = 0;
};
/// Of a channel of the rows [first, last) of a batch.
Moments moments(const BatchArrays& batch, std::int64_t channel, std::int64_t first, std::int64_t last) {
  const float* x = batch.at("x").as<float>();
  const auto at = [&](std::int64_t row, std::int64_t i) { return x[(row * channels + channel) * length + i]; };
  const double count = static_cast<double>((last - first) * length);
  Moments found;
  for (std::int64_t row = first; row < last; ++row)
    for (std::int64_t i = 0; i < length; ++i) found.mean += at(row, i) / count;
  for (std::int64_t row = first; row < last; ++row)
    for (std::int64_t i = 0; i < length; ++i) found.unbiased += std::pow(at(row, i) - found.mean, 2) / (count - 1);
  return found;
}

float running(const Model& model, const std::string& name, std::int64_t channel) {
  return model.weights().at("norm.running_" + name).as<float>()[channel];
}

/// Checks the running statistics after `updates` updates of `parts` equal parts of `plays` batches each.
void check_running(const Model& model, const Rows& batches, std::int64_t updates, std::int64_t parts,
                   std::int64_t plays) {
  BatchArrays batch = batches.blank();
  for (std::int64_t channel = 0; channel < channels; ++channel) {
    double mean = 0, variance = 1;
    for (std::int64_t update = 0; update < updates; ++update) {
      Moments all;
      for (std::int64_t play = 0; play < plays; ++play) {
        batches.training(static_cast<std::uint64_t>(update * plays + play), batch);
        const std::int64_t each = batches.rows() / parts;
        for (std::int64_t part = 0; part < parts; ++part) {
          const Moments own = moments(batch, channel, part * each, (part + 1) * each);
          all.mean += own.mean / static_cast<double>(parts * plays);
          all.unbiased += own.unbiased / static_cast<double>(parts * plays);
        }
      }
      mean = 0.9 * mean + 0.1 * all.mean;
      variance = 0.9 * variance + 0.1 * all.unbiased;
    }
    CHECK(running(model, "mean", channel) == doctest::Approx(mean).epsilon(1e-5));
    CHECK(running(model, "var", channel) == doctest::Approx(variance).epsilon(1e-5));
  }
}
}  // namespace

TEST_CASE("batch_norm: training keeps running statistics, and everything else normalises by them") {
  Model model = model_of();
  CHECK(model.updated_weights() == std::vector<std::string>{"norm.running_mean", "norm.running_var"});
  CHECK(model.parameter_count() == 2 * channels + 12 * 2 + 2);
  const Rows batches(6);
  Trainer trainer(model, batches, recurrent::options_of());
  CHECK(trainer.trained().names() == std::vector<std::string>{"norm.weight", "norm.bias", "out.weight", "out.bias"});
  for (int i = 0; i < 3; ++i) trainer.update();
  check_running(model, batches, 3, 1, 1);

  BatchArrays batch = batches.blank();
  batches.validation(0, batch);
  const Store whole = model.play("logits", {{"x", batch.at("x")}});
  for (std::int64_t row = 0; row < 6; ++row)
    for (std::int64_t k = 0; k < 2; ++k) {
      double expected = model.weights().at("out.bias").as<float>()[k];
      for (std::int64_t i = 0; i < channels * length; ++i) {
        const std::int64_t c = i / length;
        const auto weight = [&](const char* name, std::int64_t at) -> double {
          return model.weights().at(name).as<float>()[at];
        };
        const double x = batch.at("x").as<float>()[row * channels * length + i];
        const double y = (x - running(model, "mean", c)) / std::sqrt(running(model, "var", c) + 1e-5);
        expected += (y * weight("norm.weight", c) + weight("norm.bias", c)) * weight("out.weight", k * 12 + i);
      }
      CHECK(whole[0].value.as<float>()[row * 2 + k] == doctest::Approx(expected).epsilon(1e-4));
    }
}

TEST_CASE("updated weights: an update takes the mean over its micro-batches and shards") {
  for (const auto& [shards, accumulate] : {std::pair<std::int64_t, std::int64_t>{1, 3}, {3, 1}, {2, 2}}) {
    Model model = model_of();
    const Rows batches(6);
    TrainerOptions options = recurrent::options_of(accumulate);
    options.shards = shards;
    Trainer trainer(model, batches, options);
    for (int i = 0; i < 2; ++i) trainer.update();
    check_running(model, batches, 2, shards, accumulate);
  }
}

TEST_CASE("updated weights have the same bits on any number of ranks, and after a resumption") {
  const tiny::Directory directory;
  const Rows batches(6);
  const auto trained = [&](const std::vector<int>& hosts, bool resumed) {
    Store weights;
    testing::run_ranks(hosts, [&](const std::shared_ptr<Communicator>& communicator) {
      TrainerOptions options = recurrent::options_of(2);
      options.shards = 3;
      options.communicator = hosts.size() == 1 ? nullptr : communicator;
      Model model = model_of();
      std::optional<Trainer> trainer(std::in_place, model, batches, options);
      for (int i = 0; i < 2; ++i) trainer->update();
      Model second = model_of();
      if (resumed) {
        trainer->save(directory / "checkpoint");
        trainer.emplace(second, batches, options);
        trainer->load(directory / "checkpoint");
      }
      for (int i = 0; i < 2; ++i) trainer->update();
      if (communicator->rank() + 1 == static_cast<int>(hosts.size()))
        weights = recurrent::copy_of((resumed ? second : model).weights());
    });
    return weights;
  };
  const Store alone = trained({0}, false);
  CHECK(recurrent::same_weights(alone, trained({0}, true)));
  CHECK(recurrent::same_weights(alone, trained({0, 0}, false)));
  CHECK(recurrent::same_weights(alone, trained({0, 1, 1}, false)));
}

TEST_CASE("updated weights: a failed update changes none, and a frozen one stays") {
  Model model = model_of();
  const Rows large(6, 1e38F);
  Trainer trainer(model, large, recurrent::options_of());
  const Store before = recurrent::copy_of(model.weights());
  CHECK_THROWS_AS(trainer.update(), TrainingError);
  CHECK(recurrent::same_weights(before, model.weights()));

  const Rows batches(6);
  TrainerOptions options = recurrent::options_of();
  options.frozen = {"norm.running_var"};
  Trainer frozen(model, batches, options);
  frozen.update();
  CHECK(running(model, "var", 0) == 1);
  CHECK(running(model, "mean", 0) != 0);
}

TEST_CASE("updated weights: a non-finite new value is named") {
  // The norm of x times zero is finite, its statistics are not.
  const std::string text =
      recurrent::with(R"("running_mean": "momentum)", R"("running_mean": "1e30 * of_batch[1] * 1e30 + momentum)",
                      Model::parse(normed, {}, source_root() + "/models/normed.json").definition_text());
  Model model = model_of(text);
  const Rows batches(6);
  Trainer trainer(model, batches, recurrent::options_of());
  const Store before = recurrent::copy_of(model.weights());
  const std::string error = error_of([&] { trainer.update(); });
  CHECK(error.find("the new value of weight 'norm.running_mean' of update 1 is not finite") != std::string::npos);
  CHECK(recurrent::same_weights(before, model.weights()));
}

TEST_CASE("a second application of a block continues from the values of the first") {
  const std::string counter = R"json({
    "xtape": 2, "name": "counter",
    "blocks": {"count": {
      "weights": {"calls": {"shape": [2], "init": "zeros"}, "last": {"shape": [2], "init": "zeros"}},
      "inputs": ["x"], "result": "x + last",
      "update": {"calls": "calls + x", "last": "calls"}
    }},
    "model": {
      "modules": {"count": {"block": "count"}},
      "functions": {"f": {"inputs": {"x": "float [2]"}, "do": ["y = count(x)"], "result": "y + count(10 * x)"}}
    }
  })json";
  const Model model = Model::parse(counter);
  for (const Mode mode : {Mode::train, Mode::eval}) {
    Tape tape(mode);
    const NamedVars inputs = model.inputs(tape, "f", {});
    RecordedLines lines;
    model.record(tape, "f", inputs, &lines);
    if (mode == Mode::eval) {
      CHECK(lines.updates.empty());
      continue;
    }
    CHECK(lines.updates.names() == std::vector<std::string>{"count.calls", "count.last"});
    Player player(tape, {lines.updates[0].value, lines.updates[1].value});
    Array x(Dtype::float32, {2});
    x.as<float>()[0] = 1;
    x.as<float>()[1] = 2;
    player.play({{inputs[0].value, x}});
    CHECK(player.value<float>(lines.updates[0].value)(1) == 22);
    CHECK(player.value<float>(lines.updates[1].value)(1) == 2);  // the count before the second call
  }
}

TEST_CASE("errors of updated weights") {
  const auto complaint = [&](const std::string& update, const std::string& module, const std::string& line) {
    const Model model = Model::parse(R"json({
      "xtape": 2, "name": "faulty",
      "blocks": {"keep": {
        "weights": {"kept": {"shape": [2], "init": "zeros"}}, "inputs": ["x"], "result": "x + kept",
        "update": {)json" + update + R"json(}
      }},
      "model": {
        "modules": {"keep": {"block": "keep")json" +
                                     module + R"json(}},
        "functions": {"f": {"inputs": {"x": "float [b, 2, 2]"}, "result": ")json" +
                                     line + R"json("}}
      }
    })json");
    Tape tape(Mode::train);
    model.record(tape, "f", model.inputs(tape, "f", {{"b", 3}}));
    return std::string("nothing");
  };
  const auto error = [&](const std::string& update, const std::string& module = "",
                         const std::string& line = "keep(x)") {
    return error_of([&] { complaint(update, module, line); });
  };
  const auto has = [](const std::string& text, const char* part) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  const std::string right = R"x("kept": "mean(x, axis=(0, 1)) if x.rank == 3 else mean(x, axis=0)")x";
  CHECK(error(right).empty());
  has(error(R"("kep": "x")"), "block 'keep' has no weight 'kep' to update; did you mean 'kept'?");
  has(error(R"x("kept": "sum(y)")x"), "unknown name 'y'");
  has(error(R"x("kept": "sum(x)")x"), "the new value of weight 'keep.kept' must be float32 (2,) as the weight is, not");
  for (const auto& [module, line] : std::vector<std::pair<std::string, std::string>>{
           {R"(, "checkpoint": true)", "keep(x)"}, {"", "vmap(keep, x)"}, {"", "scan(keep, x)"}})
    has(error(right, module, line), "a weight cannot be updated inside a scan, a vmap or a checkpoint");

  Model model = model_of();
  const Rows batches(6);
  TrainerOptions options = recurrent::options_of();
  options.privacy = {.clip_norm = 1, .noise_multiplier = 1, .delta = 1e-5};
  has(error_of([&] { Trainer(model, batches, options); }), "reveal them: freeze 'norm.running_mean'");
}

}  // namespace updating
