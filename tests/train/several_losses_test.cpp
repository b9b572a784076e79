// Trainings with several losses (TrainerOptions::updates). tests/golden/trainings_test.cpp compares them with PyTorch.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>

#include "support/error_of.hpp"
#include "support/folders.hpp"
#include "thread_ranks.hpp"
#include "xtape/train.hpp"

using namespace xtape;
using namespace xtape::test;

namespace {
constexpr std::int64_t rows = 8;

/// A critic and a generator with a gradient penalty (functions critic_loss, generator_loss), and two tasks that share
/// a trunk (first_loss, second_loss).
const std::string definition = R"json({
  "xtape": 2, "name": "losses",
  "blocks": {
    "matrix": {"hyper": {"in": null, "out": null}, "weights": {"w": {"shape": ["in", "out"], "init": "zeros"}},
               "inputs": {"x": "float [b, in]"}, "result": "x @ w"}
  },
  "model": {
    "modules": {
      "critic": {"block": "matrix", "in": 3, "out": 4}, "judge": {"block": "matrix", "in": 4, "out": 1},
      "generator": {"block": "matrix", "in": 2, "out": 3}, "trunk": {"block": "matrix", "in": 3, "out": 4},
      "first": {"block": "matrix", "in": 4, "out": 1}, "second": {"block": "matrix", "in": 4, "out": 3}
    },
    "functions": {
      "judged": {"inputs": {"x": "float [b, 3]"}, "result": "judge(tanh(critic(x)))"},
      "critic_loss": {
        "inputs": {"x": "float [b, 3]", "noise": "float [b, 2]", "share": "float [b, 1]"},
        "do": ["fake = stop_gradient(generator(noise))", "between = share * x + (1 - share) * fake",
               "slope = grad(sum(judged(between)), between)", "steepness = sqrt(sum(square(slope), axis=-1))"],
        "result": "mean(judged(fake)) - mean(judged(x)) + 2 * mean(square(steepness - 1))"
      },
      "generator_loss": {"inputs": {"noise": "float [b, 2]"}, "result": "-mean(judged(generator(noise)))"},
      "first_loss": {"inputs": {"x": "float [b, 3]", "y": "float [b, 1]"},
                     "result": "mean(square(first(tanh(trunk(x))) - y))"},
      "second_loss": {"inputs": {"x": "float [b, 3]"}, "result": "mean(square(second(tanh(trunk(x))) - x))"}
    }
  }
})json";

Array waves(const Shape& shape, double first, double step, double scale = 1, double shift = 0) {
  Array array(Dtype::float64, shape);
  for (std::int64_t i = 0; i < array.count(); ++i)
    array.as<double>()[i] = shift + scale * std::sin(first + step * static_cast<double>(i));
  return array;
}

/// Batches of sines.
class Waves : public Batches {
 public:
  std::int64_t rows() const override { return ::rows; }
  std::int64_t columns() const override { return 1; }
  BatchArrays blank() const override {
    BatchArrays batch;
    training(0, batch);
    return batch;
  }
  void training(std::uint64_t index, BatchArrays& batch) const override {
    const auto k = static_cast<double>(index);
    batch = {{"x", waves({::rows, 3}, 1.3 * k, 0.37)},
             {"noise", waves({::rows, 2}, 0.9 * k, 0.71)},
             {"share", waves({::rows, 1}, k, 0.53, 0.5, 0.5)},
             {"y", waves({::rows, 1}, 0.4 * k, 0.91)}};
  }
  std::int64_t validation_batches() const override { return 1; }
  void validation(std::int64_t, BatchArrays& batch) const override { training(1000, batch); }
  void validation_sample(std::uint64_t, BatchArrays& batch) const override { training(1000, batch); }
};

Model model_with_waves() {
  Model model = Model::parse(definition, {.dtype = Dtype::float64}, "losses.json");
  const std::map<std::string, double> first = {{"critic.w", 1}, {"judge.w", 2}, {"generator.w", 3},
                                               {"trunk.w", 1},  {"first.w", 2}, {"second.w", 3}};
  for (const Store::Entry& entry : model.weights()) {
    Array weight(entry.value);
    weight.assign(waves(weight.shape(), first.at(entry.name), 0.7, 0.5));
  }
  return model;
}

TrainerOptions alternating() {
  TrainerOptions options;
  options.optimizer = Adam{.beta1 = 0, .beta2 = 0.9};
  options.schedule.rate = 0.02;
  options.threads = 2;
  options.updates = {{.loss = "critic_loss", .trains = {"critic.*", "judge.*"}, .repeat = 2, .clip = 0.5},
                     {.loss = "generator_loss",
                      .trains = {"generator.*"},
                      .optimizer = Sgd{.momentum = 0.5},
                      .schedule = ScheduleOptions{.kind = ScheduleOptions::Kind::linear, .rate = 0.05, .steps = 20}}};
  return options;
}

TrainerOptions tasks() {
  TrainerOptions options;
  options.optimizer = Adam{};
  options.schedule.rate = 0.02;
  options.updates = {{.loss = "first_loss", .trains = {"trunk.*", "first.*"}},
                     {.loss = "second_loss", .trains = {"trunk.*", "second.*"}, .every = 2}};
  return options;
}

TrainerOptions simultaneous() {
  TrainerOptions options;
  options.optimizer = Adam{.beta1 = 0.5, .beta2 = 0.9};
  options.schedule.rate = 0.02;
  options.updates = {{.loss = "critic_loss", .trains = {"critic.*", "judge.*"}},
                     {.loss = "generator_loss", .trains = {"generator.*"}}};
  options.simultaneous = true;
  return options;
}

bool same_weights(const Model& a, const Model& b) {
  for (const Store::Entry& entry : a.weights())
    if (std::memcmp(entry.value.data(), b.weights().at(entry.name).data(), entry.value.bytes()) != 0) return false;
  return true;
}
}  // namespace

TEST_CASE("a loss changes its own weights only, and reports have its name") {
  Model model = model_with_waves();
  const Waves batches;
  Trainer trainer(model, batches, alternating());
  CHECK(trainer.trained().names() == std::vector<std::string>{"critic.w", "judge.w", "generator.w"});
  const Array generator = model.weight("generator.w").clone(), critic = model.weight("critic.w").clone();
  const auto is_still = [](const Array& before, const Array& now) {
    return std::memcmp(before.data(), now.data(), now.bytes()) == 0;
  };
  std::string names;
  for (int i = 0; i < 7; ++i) {
    names += trainer.update().losses[0].loss[0];
    if (i < 2) CHECK(is_still(generator, model.weight("generator.w")));
    if (i < 1) CHECK(!is_still(critic, model.weight("critic.w")));
  }
  CHECK(names == "ccgccgc");
  CHECK(!is_still(generator, model.weight("generator.w")));
}

TEST_CASE("the loss of a simultaneous update is the sum of its losses") {
  Model model = model_with_waves();
  const Waves batches;
  const StepReport report = Trainer(model, batches, simultaneous()).update();
  REQUIRE(report.losses.size() == 2);
  CHECK(report.loss == report.losses[0].mean + report.losses[1].mean);
}

TEST_CASE("a training with several losses continues from a checkpoint with the same bits") {
  for (const TrainerOptions& options : {alternating(), tasks(), simultaneous()}) {
    const Waves batches;
    const Folder folder;
    Model whole = model_with_waves(), begun = model_with_waves(), resumed = model_with_waves();
    Trainer reference(whole, batches, options), first(begun, batches, options);
    for (int i = 0; i < 11; ++i) reference.update();
    for (int i = 0; i < 4; ++i) first.update();  // within a round
    first.save(folder.path() + "/checkpoint");
    Trainer second(resumed, batches, options);
    second.load(folder.path() + "/checkpoint");
    for (int i = 4; i < 11; ++i) second.update();
    CHECK(same_weights(whole, resumed));
  }
}

TEST_CASE("several losses have the same bits on any number of ranks and threads") {
  for (TrainerOptions options : {alternating(), tasks(), simultaneous()}) {
    options.shards = 4;
    options.accumulate = 2;
    std::vector<std::string> outcomes;
    for (const std::vector<int>& hosts : std::vector<std::vector<int>>{{0}, {0, 0}, {0, 1, 1}}) {
      std::vector<std::string> of_rank(hosts.size());
      testing::run_ranks(hosts, [&](const std::shared_ptr<Communicator>& communicator) {
        TrainerOptions own = options;
        own.communicator = hosts.size() == 1 ? nullptr : communicator;
        own.threads = static_cast<int>(hosts.size());
        Model model = model_with_waves();
        const Waves batches;
        Trainer trainer(model, batches, own);
        std::string& bits = of_rank[static_cast<std::size_t>(communicator->rank())];
        for (int i = 0; i < 7; ++i) {
          const StepReport report = trainer.update();
          for (const double number : {report.loss, report.norm, report.rate})
            bits.append(reinterpret_cast<const char*>(&number), sizeof number);
        }
        for (const Store::Entry& weight : model.weights())
          bits.append(static_cast<const char*>(weight.value.data()), weight.value.bytes());
      });
      outcomes.insert(outcomes.end(), of_rank.begin(), of_rank.end());
    }
    for (const std::string& outcome : outcomes) CHECK(outcome == outcomes[0]);
  }
}

TEST_CASE("evaluations measure every loss, and the first is that of the evaluation") {
  Model model = model_with_waves();
  const Waves batches;
  Trainer trainer(model, batches, alternating());
  const Evaluation evaluation = trainer.evaluate();
  REQUIRE(evaluation.losses.size() == 2);
  CHECK(evaluation.losses[0].loss == "critic_loss");
  CHECK(evaluation.losses[1].loss == "generator_loss");
  CHECK(evaluation.loss == evaluation.losses[0].mean);
  BatchArrays batch;
  batches.validation(0, batch);
  const Array noise = batch.at("noise");
  CHECK(evaluation.losses[1].mean ==
        doctest::Approx(model.play("generator_loss", {{"noise", noise}})[0].value.as<double>()[0]));
}

TEST_CASE("wrong losses of a training are errors that name them") {
  const Waves batches;
  const auto error = [&](const std::function<void(TrainerOptions&)>& change) {
    TrainerOptions options = alternating();
    change(options);
    Model model = model_with_waves();
    return error_of([&] { Trainer(model, batches, options); });
  };
  CHECK(error([](TrainerOptions& o) { o.updates[0].repeat = 0; }) ==
        "updates[0]: 'repeat' must be 1 to 1048576, not 0");
  CHECK(error([](TrainerOptions& o) { o.updates[0].every = o.updates[1].every = 2; }) ==
        "updates: a loss must have 'every' 1, because each round needs an update");
  CHECK(error([](TrainerOptions& o) { o.updates[1].loss = ""; }) == "updates[1]: 'loss' must name a function");
  CHECK(error([](TrainerOptions& o) { o.updates[0].repeat = 1048576; }) ==
        "updates: 'every' and 'repeat' must let the order begin again after at most 1048576 updates");
  CHECK(error([](TrainerOptions& o) { o.simultaneous = true; }) ==
        "updates[0]: 'every', 'repeat', 'schedule' and 'clip' are for losses that take turns, not for 'simultaneous' "
        "ones");
  CHECK(error([](TrainerOptions& o) { o.updates[1].trains = {"generatr.*"}; }).find("updates") != std::string::npos);
  CHECK(error([](TrainerOptions& o) { o.updates[1].loss = "generator_los"; }).find("generator_loss") !=
        std::string::npos);
  CHECK(error([](TrainerOptions& o) {
          o = simultaneous();
          o.updates[1].trains = {"*"};
        }).find("is trained by several of the 'updates'") != std::string::npos);
  CHECK(error([](TrainerOptions& o) { o.updates[1].trains = {"trunk.*"}; }) ==
        "function 'generator_loss' of model 'losses' does not depend on any trained weight");
}

TEST_CASE("the measure of the best evaluation is a choice") {
  const Waves batches;
  const auto best = [&](const std::string& of) {
    Model model = model_with_waves();
    Trainer trainer(model, batches, alternating());
    std::vector<Evaluation> seen;
    Trainer::Callbacks callbacks;
    callbacks.evaluation = [&](Evaluation& evaluation) {
      evaluation.bleu = evaluation.step % 4 == 0 ? 30.0 + static_cast<double>(evaluation.step) : 1.0;
      seen.push_back(evaluation);
    };
    trainer.fit({.steps = 9, .evaluate_every = 1, .best = of}, callbacks);
    const auto least = [&](const auto& measure) { return std::ranges::min_element(seen, {}, measure)->step; };
    if (of == "generator_loss")
      CHECK(trainer.best_step() == least([](const Evaluation& each) { return each.losses[1].mean; }));
    if (of == "loss") CHECK(trainer.best_step() == least([](const Evaluation& each) { return each.loss; }));
    return trainer.best_step();
  };
  best("loss");
  best("generator_loss");
  CHECK(best("bleu") == 8);
  CHECK(error_of([&] { best("accuracy"); })
            .starts_with("the best evaluation is to be that of 'accuracy', which evaluations of this training do not "
                         "measure; they measure loss, critic_loss, generator_loss"));
}
