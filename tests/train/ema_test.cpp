// The moving average of the weights (TrainerOptions::ema).
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "support/error_of.hpp"
#include "thread_ranks.hpp"
#include "tiny.hpp"
#include "xtape/safetensors.hpp"

using namespace xtape;
using test::error_of;

namespace {
Model tiny_model() {
  return Model::parse(tiny::definition, {.hyper = {{"rate", "0.1"}}, .seed = 5}, "tiny.json");
}

TrainerOptions averaging(double decay = 0.75, bool evaluated = true) {
  TrainerOptions options;
  options.schedule.rate = 0.05;
  options.ema = {decay, evaluated};
  return options;
}

Store cloned(const Store& store) {
  Store copy;
  for (const Store::Entry& each : store) copy.add(each.name, each.value.clone());
  return copy;
}

bool same(const Store& a, const Store& b) {
  for (const Store::Entry& each : a)
    if (std::memcmp(each.value.data(), b.at(each.name).data(), each.value.bytes()) != 0) return false;
  return a.size() == b.size();
}

/// The averages that a trainer writes.
Store averages_of(const Trainer& trainer, const tiny::Directory& directory) {
  trainer.save(directory / "checkpoint");
  return load_arrays(directory / "checkpoint/ema.safetensors");
}
}  // namespace

TEST_CASE("the average starts with the weights after the first update, and moves towards those after each") {
  const CharacterTokenizer tokenizer(tiny::sums_text());
  const tiny::SumBatches batches(tokenizer, 8);
  const tiny::Directory directory;
  Model model = tiny_model(), plain = tiny_model();
  Trainer trainer(model, batches, averaging()), other(plain, batches, averaging(0));
  std::vector<std::vector<double>> expected(model.weights().size());
  for (int update = 1; update <= 5; ++update) {
    trainer.update();
    other.update();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const Array& weight = model.weights()[i].value;
      expected[i].resize(static_cast<std::size_t>(weight.count()));
      for (std::int64_t k = 0; k < weight.count(); ++k) {
        double& mean = expected[i][static_cast<std::size_t>(k)];
        mean = update == 1 ? weight.as<float>()[k] : 0.75 * mean + 0.25 * weight.as<float>()[k];
      }
    }
  }
  CHECK(same(model.weights(), plain.weights()));  // the training itself is the same
  const Store averages = averages_of(trainer, directory);
  REQUIRE(averages.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    for (std::size_t k = 0; k < expected[i].size(); ++k)
      CHECK(std::abs(averages.at(model.weights()[i].name).as<float>()[k] - expected[i][k]) <= 1e-6);
}

TEST_CASE("evaluations use the averages if the options say so, and leave the weights as they were") {
  const CharacterTokenizer tokenizer(tiny::sums_text());
  const tiny::SumBatches batches(tokenizer, 8);
  const tiny::Directory directory;
  Model model = tiny_model();
  Trainer trainer(model, batches, averaging());
  for (int i = 0; i < 4; ++i) trainer.update();
  const Store before = cloned(model.weights());
  const double loss = trainer.evaluate().loss;
  CHECK(same(model.weights(), before));
  Model averaged = tiny_model();
  for (const auto& [name, average] : averages_of(trainer, directory)) averaged.weight(name).assign(average);
  CHECK(loss == evaluate(averaged, batches).loss);
  CHECK(loss != evaluate(model, batches).loss);
  Model other = tiny_model();
  Trainer raw(other, batches, averaging(0.75, false));
  for (int i = 0; i < 4; ++i) raw.update();
  CHECK(raw.evaluate().loss == evaluate(model, batches).loss);
}

TEST_CASE("averages continue from a checkpoint, and are the same on ranks") {
  const CharacterTokenizer tokenizer(tiny::sums_text());
  const tiny::SumBatches batches(tokenizer, 8);
  TrainerOptions options = averaging();
  options.shards = 4;
  std::vector<Store> outcomes;
  std::vector<double> losses;
  for (const std::vector<int>& hosts : std::vector<std::vector<int>>{{0}, {0, 0}, {0, 1, 1}}) {
    const tiny::Directory directory;
    std::vector<double> loss(hosts.size());
    testing::run_ranks(hosts, [&](const std::shared_ptr<Communicator>& communicator) {
      TrainerOptions own = options;
      own.communicator = hosts.size() == 1 ? nullptr : communicator;
      Model model = tiny_model();
      Trainer trainer(model, batches, own);
      for (int i = 0; i < 3; ++i) trainer.update();
      trainer.save(directory / "three");
      communicator->barrier();
      Model resumed = tiny_model();
      Trainer again(resumed, batches, own);
      again.load(directory / "three");
      for (int i = 0; i < 3; ++i) again.update();
      loss[static_cast<std::size_t>(communicator->rank())] = again.evaluate().loss;
      again.save(directory / "six");
    });
    losses.insert(losses.end(), loss.begin(), loss.end());
    outcomes.push_back(load_arrays(directory / "six/ema.safetensors"));
  }
  for (const Store& outcome : outcomes) CHECK(same(outcome, outcomes[0]));
  for (const double loss : losses) CHECK(loss == losses[0]);
  Model whole = tiny_model();
  const tiny::Directory directory;
  Trainer trainer(whole, batches, options);
  for (int i = 0; i < 6; ++i) trainer.update();
  CHECK(same(averages_of(trainer, directory), outcomes[0]));
}

TEST_CASE("a run gives its averages by choice") {
  const tiny::Directory directory;
  Run run = Run::create(tiny::load(directory, {{"ema", "0.5"}, {"steps", "4"}, {"checkpoint_every", "2"}}),
                        directory / "run");
  CHECK(run.train());
  const Store averages = load_arrays(directory / "run/checkpoints/00000004/ema.safetensors");
  CHECK(same(Run::open(directory / "run", {}, CheckpointChoice::parse("ema")).model().weights(), averages));
  CHECK(same(Run::open(directory / "run", {}, CheckpointChoice::parse("ema:2")).model().weights(),
             load_arrays(directory / "run/checkpoints/00000002/ema.safetensors")));
  CHECK(!same(Run::open(directory / "run").model().weights(), averages));
  CHECK(error_of([] { CheckpointChoice::parse("ema:average:2"); }) ==
        "'ema:average:2' must be ema, ema:best or ema:STEP");
  CHECK(error_of([&] { tiny::load(directory, {{"ema", "1"}}); }).find("must be in [0, 1)") != std::string::npos);
  Run plain = Run::create(tiny::load(directory, {{"steps", "4"}}), directory / "plain");
  CHECK(plain.train());
  CHECK(error_of([&] {
          Run::open(directory / "plain", {}, CheckpointChoice::parse("ema"));
        }).find("has no averages of the weights") != std::string::npos);
}
