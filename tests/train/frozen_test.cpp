// Frozen weights and weights without a gradient do not change and cost nothing.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "sum_batches.hpp"
#include "tiny.hpp"
#include "xtape/safetensors.hpp"

using namespace xtape;

namespace {
using Patterns = std::vector<std::string>;

struct FrozenSetup {
  explicit FrozenSetup(const std::string& definition = tiny::definition)
      : tokenizer(tiny::sums_text()),
        batches(tokenizer, 8),
        model(Model::parse(definition, {.hyper = {}, .seed = 5}, "tiny.json")) {
    for (const Store::Entry& entry : model.weights()) start.add(entry.name, entry.value.clone());
  }
  /// The names of the weights of which any bit has changed.
  Patterns changed() const {
    Patterns names;
    for (const Store::Entry& entry : model.weights())
      if (std::memcmp(entry.value.data(), start.at(entry.name).data(), entry.value.bytes()) != 0)
        names.push_back(entry.name);
    return names;
  }
  CharacterTokenizer tokenizer;
  tiny::SumBatches batches;
  Model model;
  Store start;
};

TrainerOptions options_freezing(const Patterns& frozen, const Patterns& trainable = {}) {
  TrainerOptions options;
  options.optimizer.weight_decay = 0.1;
  options.schedule.rate = 0.05;
  options.clip = 0.5;
  options.seed = 9;
  options.threads = 2;
  options.frozen = frozen;
  options.trainable = trainable;
  return options;
}

bool same_weights(const Model& a, const Model& b) {
  for (const Store::Entry& entry : a.weights())
    if (std::memcmp(entry.value.data(), b.weights().at(entry.name).data(), entry.value.bytes()) != 0) return false;
  return a.weights().size() == b.weights().size() && a.weights().size() > 0;
}

std::string replaced(std::string text, const std::string& part, const std::string& by) {
  const std::size_t at = text.find(part);
  REQUIRE(at != std::string::npos);
  return text.replace(at, part.size(), by);
}

/// The tiny model with stop_gradient on its table `here`, so that the table gets no gradient.
std::string with_stopped_table() {
  const std::string still = R"json("blocks": {
    "still": {
      "hyper": {"rows": null, "width": null},
      "weights": {"weight": {"shape": ["rows", "width"], "init": "normal", "std": 0.3}},
      "inputs": ["i"],
      "result": "take(stop_gradient(weight), i, axis=0)"
    },)json";
  const std::string stopped = replaced(tiny::definition, R"("blocks": {)", still);
  return replaced(stopped, R"("here": {"block": "table")", R"("here": {"block": "still")");
}
}  // namespace

TEST_CASE("frozen weights do not change; 'trainable' names the weights that are not frozen") {
  for (const std::int64_t accumulate : {1, 2}) {
    FrozenSetup frozen, trainable;
    TrainerOptions options = options_freezing({"here.*", "out.weight"});
    options.accumulate = accumulate;
    Trainer first(frozen.model, frozen.batches, options);
    options.frozen = {};
    options.trainable = {"bef*"};
    Trainer second(trainable.model, trainable.batches, options);
    for (int i = 0; i < 5; ++i) CHECK(first.update().loss == second.update().loss);
    CHECK(frozen.changed() == Patterns{"before.weight"});
    CHECK(first.trained().names() == Patterns{"before.weight"});
    CHECK(same_weights(frozen.model, trainable.model));
  }
}

TEST_CASE("frozen weights do not count in the norm of gradients") {
  double squares = 0;
  for (const char* name : {"here.weight", "before.weight", "out.weight"}) {
    FrozenSetup setup;
    const double norm = Trainer(setup.model, setup.batches, options_freezing({}, {name})).update().norm;
    CHECK(norm > 0);
    squares += norm * norm;
  }
  FrozenSetup setup;
  CHECK(Trainer(setup.model, setup.batches, options_freezing({})).update().norm == doctest::Approx(std::sqrt(squares)));
}

TEST_CASE("weights are trained in the same way whether others are frozen or not") {
  FrozenSetup all, some;
  TrainerOptions options = options_freezing({});
  options.clip = 0;
  Trainer(all.model, all.batches, options).update();
  options.frozen = {"here.weight"};
  Trainer(some.model, some.batches, options).update();
  for (const char* name : {"before.weight", "out.weight"}) {
    const Array &a = all.model.weights().at(name), &b = some.model.weights().at(name);
    for (std::int64_t i = 0; i < a.count(); ++i)
      CHECK(a.as<float>()[i] == doctest::Approx(b.as<float>()[i]).epsilon(1e-6));
  }
}

TEST_CASE("nothing is computed for frozen weights alone") {
  const auto ops = [](const Patterns& frozen) {
    FrozenSetup setup;
    const Trainer trainer(setup.model, setup.batches, options_freezing(frozen));
    Patterns names;
    for (const Plan::Step& step : trainer.plan().steps) names.push_back(step.op);
    return names;
  };
  const auto count = [](const Patterns& names, const std::string& op) {
    return std::count(names.begin(), names.end(), op);
  };
  CHECK(count(ops({}), "index_add") == 2);  // the gradients of two tables
  CHECK(count(ops({"before.*"}), "index_add") == 1);
  CHECK(count(ops({"here.*", "before.*"}), "index_add") == 0);
  CHECK(count(ops({"here.*", "before.*"}), "einsum") == count(ops({}), "einsum") - 1);  // none for the modules below
}

TEST_CASE("a trainer with frozen weights has no moments for them, and continues with the same bits") {
  const tiny::Directory directory;
  FrozenSetup straight, other;
  Trainer first(straight.model, straight.batches, options_freezing({"here.*"}));
  for (int i = 0; i < 3; ++i) first.update();
  first.save(directory / "checkpoint");
  for (int i = 0; i < 3; ++i) first.update();
  Trainer second(other.model, other.batches, options_freezing({"here.*"}));
  second.load(directory / "checkpoint");
  for (int i = 0; i < 3; ++i) second.update();
  CHECK(same_weights(straight.model, other.model));
  const Store state = load_arrays(directory / "checkpoint/optimizer.safetensors");
  CHECK(state.size() == 5);
  CHECK(state.find("first.here.weight") == nullptr);
  CHECK(state.find("second.out.weight") != nullptr);
  FrozenSetup whole;  // newly trained weights have no moments to continue from
  CHECK_THROWS_WITH_AS(Trainer(whole.model, whole.batches, options_freezing({})).load(directory / "checkpoint"),
                       doctest::Contains("does not hold 'first.here.weight'"), FileError);
}

TEST_CASE("a training that continues may freeze more weights, and keeps moments and counts of the others") {
  for (const bool moments : {true, false}) {
    const tiny::Directory directory;
    TrainerOptions options = options_freezing({});
    if (!moments) options.optimizer = Sgd{};
    options.groups = {{"out.*", Adam{}, 1}};  // begins an update later, so that the counts differ
    FrozenSetup first, second, third;
    Trainer before(first.model, first.batches, options);
    for (int i = 0; i < 3; ++i) before.update();
    before.save(directory / "checkpoint");
    const std::string file = directory / "checkpoint/optimizer.safetensors";
    CHECK(load_arrays(file).at("updates").as<std::int64_t>()[1] == 3);
    options.frozen = {"here.*"};
    Trainer after(second.model, second.batches, options);
    after.load(directory / "checkpoint");
    after.save(directory / "again");
    const Store all = load_arrays(file), some = load_arrays(directory / "again/optimizer.safetensors");
    CHECK(some.find("first.here.weight") == nullptr);
    CHECK(some.at("updates").shape() == Shape{2});
    CHECK(some.at("updates").as<std::int64_t>()[0] == 3);  // before.weight
    CHECK(some.at("updates").as<std::int64_t>()[1] == 2);  // out.weight
    for (const char* name : {"first.out.weight", "second.out.weight"})
      CHECK(std::memcmp(some.at(name).data(), all.at(name).data(), all.at(name).bytes()) == 0);
    options.frozen = {};
    CHECK_THROWS_WITH_AS(Trainer(third.model, third.batches, options).load(directory / "again"),
                         doctest::Contains("here.weight'"), FileError);
  }
}

TEST_CASE("no optimiser changes a weight without a gradient, as in PyTorch") {
  using Kind = OptimizerOptions::Kind;
  for (const Kind kind : {Kind::adamw, Kind::adam, Kind::sgd})
    for (const std::int64_t accumulate : {1, 2}) {
      FrozenSetup setup(with_stopped_table());
      TrainerOptions options = options_freezing({});
      options.optimizer.kind = kind;
      options.optimizer.momentum = 0.9;
      options.accumulate = accumulate;
      Trainer trainer(setup.model, setup.batches, options);
      for (int i = 0; i < 3; ++i) trainer.update();
      CHECK(setup.changed() == Patterns{"before.weight", "out.weight"});
    }
  FrozenSetup setup(with_stopped_table());
  CHECK_THROWS_WITH_AS(Trainer(setup.model, setup.batches, options_freezing({}, {"here.*"})),
                       "function 'loss' of model 'tiny' does not depend on any trained weight", DefinitionError);
}

TEST_CASE("patterns that match no weight, or every weight, are errors") {
  FrozenSetup setup;
  const auto refused = [&](const TrainerOptions& options, const char* message) {
    CHECK_THROWS_WITH_AS(Trainer(setup.model, setup.batches, options), message, Error);
  };
  refused(options_freezing({"here.wieght"}),
          "'frozen': no weight of model 'tiny' matches 'here.wieght'; did you mean 'here.weight'?");
  refused(options_freezing({}, {"*.wight"}),
          "'trainable': no weight of model 'tiny' matches '*.wight'; did you mean '*.weight'?");
  refused(options_freezing({"encoder.layers.*"}),
          "'frozen': no weight of model 'tiny' matches 'encoder.layers.*'; its names are like 'here.weight'");
  refused(options_freezing({"*"}), "'frozen' matches every weight of model 'tiny': none is left to train");
  refused(options_freezing({"here.*"}, {"out.*"}), "'frozen' and 'trainable' exclude each other: give one of them");
}

TEST_CASE("recipes name frozen weights") {
  const tiny::Directory directory;
  const Recipe recipe = tiny::load(directory, {{"frozen", R"(["here.*", "out.*"])"}});
  Run run = Run::create(recipe, directory / "run");
  CHECK(run.trainer().trained().names() == Patterns{"before.weight"});
  CHECK(run.train());
  const auto refused = [&](const std::vector<Setting>& settings, const char* message) {
    CHECK_THROWS_WITH_AS(tiny::load(directory, settings), doctest::Contains(message), DefinitionError);
  };
  CHECK(tiny::load(directory, {{"frozen", "here.*"}}).trainer.frozen == Patterns{"here.*"});
  refused({{"frozen", "[1]"}}, "--set frozen: 'frozen' must be a list of strings, or one string, not [1]");
  refused({{"frozen", R"(["a"])"}, {"trainable", R"(["b"])"}}, "'trainable' and 'frozen' exclude each other");
  refused({{"trainable", "[]"}}, "'trainable' names no weight to train");
  CHECK_THROWS_WITH_AS(Run::create(tiny::load(directory, {{"frozen", R"(["hre.*"])"}}), directory / "other"),
                       doctest::Contains("no weight of model 'tiny' matches 'hre.*'"), DefinitionError);
  CHECK(!tiny::fs::exists(directory / "other"));
}

TEST_CASE("a group that is frozen until an update then trains as if it began there") {
  // One weight with adam, which counts its updates, and others with sgd, which has no state.
  const auto options_until = [](std::int64_t update) {
    TrainerOptions options;
    options.optimizer = Sgd{};
    options.schedule.rate = 0.05;
    options.groups = {{"out.*", Adam{}, update}};
    return options;
  };
  struct Later : tiny::SumBatches {  // the batches after the first three
    using SumBatches::SumBatches;
    void training(std::uint64_t index, BatchArrays& batch) const override { SumBatches::training(index + 3, batch); }
  };
  const CharacterTokenizer tokenizer(tiny::sums_text());
  const tiny::SumBatches batches(tokenizer, 8);
  const Later later(tokenizer, 8);
  const auto made = [] { return Model::parse(tiny::definition, {.hyper = {{"rate", "0"}}, .seed = 5}, "tiny.json"); };
  Model thawed = made(), frozen = made();
  Trainer whole(thawed, batches, options_until(3));
  TrainerOptions first = options_until(0);
  first.frozen = {"out.*"};
  Trainer before(frozen, batches, first);
  const auto equal = [&] {
    for (const Store::Entry& each : thawed.weights())
      if (std::memcmp(each.value.data(), frozen.weights().at(each.name).data(), each.value.bytes()) != 0) return false;
    return true;
  };
  const Array out = thawed.weight("out.weight").clone();
  for (int i = 0; i < 3; ++i) CHECK(whole.update().norm == before.update().norm);
  CHECK(equal());
  CHECK(std::memcmp(out.data(), thawed.weight("out.weight").data(), out.bytes()) == 0);
  Trainer after(frozen, later, options_until(0));
  for (int i = 0; i < 3; ++i) CHECK(whole.update().norm == after.update().norm);
  CHECK(equal());
  CHECK(std::memcmp(out.data(), thawed.weight("out.weight").data(), out.bytes()) != 0);
}
