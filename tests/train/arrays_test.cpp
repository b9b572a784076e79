// Runs on arrays: regression on a CSV file, and definitions with any inputs.
#include <doctest/doctest.h>

#include <cmath>

#include "recurrent.hpp"
#include "source_root.hpp"
#include "thread_ranks.hpp"
#include "tiny.hpp"
#include "xtape/safetensors.hpp"

namespace array_runs {

using namespace xtape;

namespace {
/// Rows a, b, c, y of a smooth function, whose columns differ in scale.
std::string table(int rows, int first = 0) {
  std::string text = "a,b,y,c\n";
  for (int i = first; i < first + rows; ++i) {
    const double a = std::sin(7.1 * i), b = 100 + 20 * std::sin(3.7 * i), c = 1e-2 * std::cos(2.3 * i);
    text += std::to_string(a) + "," + std::to_string(b) + "," + std::to_string(a * a + 0.05 * b + 100 * a * c) + "," +
            std::to_string(c) + "\n";
  }
  return text;
}

Recipe regression(const tiny::Directory& directory, const std::vector<Setting>& settings = {}) {
  std::vector<Setting> all{Setting::parse("data.arrays=" + directory.write("table.csv", table(400)))};
  all.insert(all.end(), settings.begin(), settings.end());
  return Recipe::load(source_root() + "/models/recipes/regression.json", all);
}
}  // namespace

TEST_CASE("a recipe trains a perceptron on a CSV file") {
  const tiny::Directory directory;
  Run run = Run::create(regression(directory), directory / "run");
  CHECK(run.model().hyper().integer("in") == 3);
  CHECK(run.model().hyper().integer("out") == 1);
  CHECK(run.batches().epoch_batches() == 12);
  CHECK(run.train());
  Run best = Run::open(directory / "run", {}, CheckpointChoice::parse("best"));
  const Evaluation evaluation = best.evaluate();
  CHECK(evaluation.tokens == 40);
  CHECK(evaluation.loss < 0.02);  // the variance of y is 0.7
  CHECK_FALSE(evaluation.perplexity.has_value());
  // The loss is the mean over all rows, whatever the batches.
  Run other = Run::open(directory / "run", {Setting::parse("batch.size=7")}, CheckpointChoice::parse("best"));
  CHECK(other.evaluate().loss == doctest::Approx(evaluation.loss).epsilon(1e-5));
  CHECK_THROWS_WITH_AS(best.tokenizer(), "this run has no tokenizer: its data is arrays, and its recipe names none",
                       Error);
}

TEST_CASE("training on arrays resumes with the same bits") {
  const tiny::Directory directory;
  const std::vector<Setting> settings{Setting::parse("steps=30"), Setting::parse("batch.shards=2"),
                                      Setting::parse("batch.accumulate=2"), Setting::parse("hyper.dropout_rate=0.1")};
  Run whole = Run::create(regression(directory, settings), directory / "whole");
  CHECK(whole.train());
  {
    Run run = Run::create(regression(directory, settings), directory / "stopped");
    Trainer::Callbacks callbacks;
    callbacks.stop = [&] { return run.trainer().step() == 13; };
    CHECK_FALSE(run.train(callbacks));
  }
  Run resumed = Run::resume(directory / "stopped");
  CHECK(resumed.train());
  CHECK(recurrent::same_weights(whole.model().weights(), resumed.model().weights()));
}

TEST_CASE("training on arrays has the same bits on any number of ranks") {
  const tiny::Directory directory;
  const std::string file = directory.write("table.csv", table(90));
  const auto trained = [&](const std::vector<int>& hosts) {
    Store weights;
    testing::run_ranks(hosts, [&](const std::shared_ptr<Communicator>& communicator) {
      const ArrayRows rows = read_array_rows(file, {{"x", {"*"}, true}, {"y", {"y"}, true}});
      const ArrayBatches batches(rows, rows, {20, 1});
      Model model =
          Model::load(source_root() + "/models/mlp.json", {.hyper = {{"in", "3"}, {"dropout_rate", "0.1"}}, .seed = 2});
      TrainerOptions options = recurrent::options_of();
      options.shards = 2;
      options.communicator = hosts.size() == 1 ? nullptr : communicator;
      Trainer trainer(model, batches, options);
      for (int i = 0; i < 7; ++i) trainer.update();
      if (communicator->rank() == 0) weights = recurrent::copy_of(model.weights());
    });
    return weights;
  };
  const Store alone = trained({0});
  CHECK(recurrent::same_weights(alone, trained({0, 0})));
  CHECK(recurrent::same_weights(alone, trained({0, 1})));
}

namespace {
/// An autoencoder without targets, and a classifier with labels, of any inputs.
const std::string definition = R"json({
  "xtape": 2,
  "name": "any",
  "hyper": {"in": null, "classes": 1},
  "model": {
    "weights": {"down": {"shape": ["in", 2], "init": "normal", "std": 0.3}, "up": {"shape": [2, "in"], "init": "normal", "std": 0.3},
                "out": {"shape": [2, "classes"], "init": "zeros"}},
    "functions": {
      "code": {"inputs": {"pixels": "float [b, in]"}, "result": "matmul(pixels, down)"},
      "logits": {"inputs": {"pixels": "float [b, in]"}, "result": "matmul(code(pixels), out)"},
      "loss": {"inputs": {"pixels": "float [b, in]", "kind": "int [b]"},
               "do": ["total, count = cross_entropy(logits(pixels), kind, ignore=-1)",
                      "again = sum(square(matmul(code(pixels), up) - pixels))"],
               "result": "total + again, count"},
      "accuracy": {"inputs": {"pixels": "float [b, in]", "kind": "int [b]"},
                   "do": ["right = sum(argmax(logits(pixels), axis=-1) == kind)", "count = sum(kind != -1)"],
                   "result": "right, count"}
    }
  }
})json";

Recipe any(const tiny::Directory& directory, const std::string& data) {
  directory.write("any.json", definition);
  return Recipe::load(directory.write("recipe.json", R"json({
  "xtape": 2, "name": "any", "definition": "any.json",
  "hyper": {"in": {"from": "pixels"}, "classes": {"from": "labels"}},
  "data": )json" + data + R"json(,
  "batch": {"size": 10}, "optimizer": {"kind": "adam"}, "schedule": {"kind": "constant", "rate": 0.05}, "epochs": 20
})json"));
}

/// Points near the plane of two directions, whose sign of the first tells the kind.
std::string points(int rows, const char* kinds[]) {
  std::string text = "p,q,r,kind\n";
  for (int i = 0; i < rows; ++i) {
    const double a = std::sin(7.1 * i) + (i % 2 == 0 ? 2 : -2), b = std::cos(3.7 * i);
    text += std::to_string(a) + "," + std::to_string(a - b) + "," + std::to_string(b) + "," + kinds[i % 2] + "\n";
  }
  return text;
}
}  // namespace

TEST_CASE("definitions with any inputs train by a recipe: labels of words, and a validation file") {
  const tiny::Directory directory;
  const char* kinds[] = {"up", "down"};
  directory.write("points.csv", points(60, kinds));
  directory.write("other.csv", points(20, kinds));
  const std::string data = R"json({"kind": "arrays", "arrays": "points.csv", "validation_arrays": "other.csv",
           "inputs": {"pixels": "*", "kind": {"labels": "kind"}}})json";
  Run run = Run::create(any(directory, data), directory / "run");
  CHECK(run.labels() == std::vector<std::string>{"down", "up"});
  CHECK(run.train());
  Run opened = Run::open(directory / "run");
  const Evaluation evaluation = opened.evaluate();
  CHECK(evaluation.tokens == 20);
  CHECK(*evaluation.accuracy == 1);
  CHECK(opened.labels() == run.labels());
  const char* strange[] = {"up", "left"};
  directory.write("other.csv", points(20, strange));
  CHECK_THROWS_WITH_AS(Run::create(any(directory, data), directory / "strange"),
                       doctest::Contains("other.csv, row 2: the training split has no label 'left'"), Error);
}

TEST_CASE("runs on arrays: errors of recipes and data") {
  const tiny::Directory directory;
  const auto complaint = [&](const std::string& data) -> std::string {
    try {
      Run::create(any(directory, data), directory / "run");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const auto has = [&](const std::string& data, const char* part) {
    const std::string found = complaint(data);
    CAPTURE(found);
    CHECK(found.find(part) != std::string::npos);
  };
  const char* kinds[] = {"up", "down"};
  directory.write("points.csv", points(60, kinds));
  save_arrays(directory / "points.safetensors",
              {{"pixels", Array(Dtype::float32, {30, 3})}, {"other", Array(Dtype::int64, {30})}});
  has(R"({"kind": "arrays", "arrays": "points.csv"})", "needs the key 'inputs'");
  has(R"({"kind": "arrays", "arrays": "points.csv", "inputs": {"pixels": 3.5}})", "recipe.json, line 4: ");
  has(R"({"kind": "arrays", "arrays": "points.csv", "inputs": {"pixels": 3.5}})",
      "'data.inputs.pixels' must be the name of an array or column");
  has(R"({"kind": "arrays", "arrays": "points.csv", "inputs": {"pixels": ["p", "z"], "kind": {"labels": "kind"}}})",
      "points.csv has no column 'z'");
  has(R"({"kind": "arrays", "arrays": "points.csv", "inputs": {"pixels": ["p"], "kind": "kind"}})",
      "points.csv, line 2: column 'kind': 'up' is not a finite number");
  has(R"({"kind": "arrays", "arrays": "points.safetensors", "inputs": {"pixels": "pixels", "kind": "kind"}})",
      "'kind'");
  has(R"({"kind": "arrays", "arrays": "points.safetensors", "inputs": {"pixels": "pixels"}, "header": false})",
      "'data.header' is not a known key");
  has(R"({"kind": "arrays", "arrays": "points.safetensors"})", "a size is at least 1, not 0");  // there are no labels
  has(R"({"kind": "arrays", "arrays": "none.npz", "inputs": {"pixels": "x"}})", "cannot read");
}

}  // namespace array_runs
