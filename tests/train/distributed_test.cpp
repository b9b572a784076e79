#include "xtape/distributed.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "recurrent.hpp"
#include "thread_ranks.hpp"
#include "tiny.hpp"
#include "train/trainer/carried.hpp"

using namespace xtape;
using testing::run_ranks;

namespace {
const std::vector<std::vector<int>> groups = {{0},
                                              {0, 0},
                                              {0, 1},
                                              {0, 0, 0},
                                              {0, 1, 1},
                                              {0, 0, 1, 1, 2},
                                              {0, 1, 2, 3, 4},
                                              {0, 0, 0, 0, 0, 0, 0, 0},
                                              {0, 1, 0, 1},
                                              {0, 0, 0, 1, 1, 2, 2, 2}};

/// The setup of a training: every rank makes its own.
struct Training {
  Training(const std::shared_ptr<Communicator>& communicator, std::int64_t shards, std::int64_t accumulate,
           std::int64_t rows, int threads = 1, const std::string& width = "2600")
      : tokenizer(tiny::sums_text()),
        batches(tokenizer, rows),
        model(Model::parse(tiny::definition, {.hyper = {{"rate", "0.2"}, {"width", width}}, .seed = 5}, "tiny.json")) {
    options.optimizer.weight_decay = 0.1;
    options.schedule = {.kind = ScheduleOptions::Kind::cosine, .rate = 0.05, .warmup = 2, .steps = 20};
    options.accumulate = accumulate;
    options.clip = 0.5;
    options.seed = 9;
    options.threads = threads;
    options.shards = shards;
    options.communicator = communicator;
  }
  Trainer trainer() { return {model, batches, options}; }
  CharacterTokenizer tokenizer;
  tiny::SumBatches batches;
  Model model;
  TrainerOptions options;
};

/// What must not depend on the ranks.
struct Outcome {
  std::vector<double> numbers;
  Store weights;
};

void check_same(const Outcome& a, const Outcome& b) {
  CHECK(std::memcmp(a.numbers.data(), b.numbers.data(), a.numbers.size() * sizeof(double)) == 0);
  CHECK(recurrent::same_weights(a.weights, b.weights));
}

void add(Outcome& outcome, const StepReport& report) {
  outcome.numbers.insert(outcome.numbers.end(), {report.loss, report.norm, static_cast<double>(report.tokens)});
}

/// Some updates and an evaluation, on ranks of these hosts. Checks that all ranks have the same outcome.
Outcome trained(const std::vector<int>& hosts, std::int64_t shards, std::int64_t accumulate, std::int64_t rows,
                int threads = 1) {
  std::vector<Outcome> outcomes(hosts.size());
  run_ranks(hosts, [&](const std::shared_ptr<Communicator>& communicator) {
    Training training(hosts.size() == 1 ? nullptr : communicator, shards, accumulate, rows, threads);
    Trainer trainer = training.trainer();
    Outcome& outcome = outcomes[static_cast<std::size_t>(communicator->rank())];
    for (int i = 0; i < 4; ++i) add(outcome, trainer.update());
    outcome.numbers.push_back(trainer.evaluate().loss);
    outcome.weights = recurrent::copy_of(training.model.weights());
  });
  for (const Outcome& outcome : outcomes) check_same(outcome, outcomes[0]);
  return outcomes[0];
}
}  // namespace

TEST_CASE("an update has the same bits on any number of ranks and hosts") {
  struct Case {
    std::int64_t shards, accumulate, rows;
  };
  for (const Case& each : {Case{8, 1, 8}, Case{8, 1, 5}, Case{9, 3, 12}, Case{8, 2, 19}}) {
    const std::int64_t shards = each.shards, accumulate = each.accumulate, rows = each.rows;
    CAPTURE(shards);
    CAPTURE(rows);
    const Outcome alone = trained({0}, shards, accumulate, rows);
    for (const std::vector<int>& hosts : groups) check_same(alone, trained(hosts, shards, accumulate, rows));
    check_same(alone, trained({0, 1, 1}, shards, accumulate, rows, 2));
  }
}

TEST_CASE("without dropout, shards change an update by rounding only") {
  const auto updated = [](std::int64_t shards) {
    Training training(nullptr, shards, 1, 12);
    training.model = Model::parse(tiny::definition, {.hyper = {{"rate", "0"}}, .seed = 5}, "tiny.json");
    Trainer trainer = training.trainer();
    std::vector<double> numbers;
    for (int i = 0; i < 3; ++i) {
      const StepReport report = trainer.update();
      numbers.insert(numbers.end(), {report.loss, report.norm});
    }
    return numbers;
  };
  const std::vector<double> one = updated(1);
  for (std::int64_t shards : {2, 3, 5, 12, 40}) {
    const std::vector<double> many = updated(shards);
    for (std::size_t i = 0; i < one.size(); ++i) CHECK(many[i] == doctest::Approx(one[i]).epsilon(1e-4));
  }
}

TEST_CASE("a run of one number of ranks continues on another with the same bits") {
  const tiny::Directory directory;
  const Outcome straight = [&] {
    Outcome outcome;
    Training training(nullptr, 8, 1, 8);
    Trainer trainer = training.trainer();
    for (int i = 0; i < 6; ++i) add(outcome, trainer.update());
    outcome.weights = recurrent::copy_of(training.model.weights());
    return outcome;
  }();
  int number = 0;
  for (const auto& [first, second] : std::vector<std::pair<std::vector<int>, std::vector<int>>>{
           {{0}, {0, 1, 1}}, {{0, 0, 1, 2}, {0}}, {{0, 0, 0, 0}, {0, 1, 0, 1, 0, 1}}}) {
    const std::string path = directory / std::to_string(++number);
    Outcome outcome;
    run_ranks(first, [&](const std::shared_ptr<Communicator>& communicator) {
      Training training(communicator, 8, 1, 8);
      Trainer trainer = training.trainer();
      for (int i = 0; i < 3; ++i) {
        const StepReport report = trainer.update();
        if (communicator->rank() == 0) add(outcome, report);
      }
      trainer.save(path);
    });
    run_ranks(second, [&](const std::shared_ptr<Communicator>& communicator) {
      Training training(communicator, 8, 1, 8);
      Trainer trainer = training.trainer();
      trainer.load(path);
      for (int i = 0; i < 3; ++i) {
        const StepReport report = trainer.update();
        if (communicator->rank() == 0) add(outcome, report);
      }
      if (communicator->rank() == 0) outcome.weights = recurrent::copy_of(training.model.weights());
    });
    check_same(straight, outcome);
  }
}

TEST_CASE("carried states are those of a shard's rows, on any rank and after a resume") {
  const tiny::Directory directory;
  const auto run = [&](const std::vector<int>& hosts, std::int64_t accumulate, int updates, const std::string& load,
                       const std::string& save) {
    Outcome outcome;
    run_ranks(hosts, [&](const std::shared_ptr<Communicator>& communicator) {
      Model model = recurrent::model_of("0.3");
      const TextBatches batches = recurrent::batches_of(5, 4);
      TrainerOptions options = recurrent::options_of(accumulate);
      options.shards = 3;
      options.communicator = communicator;
      Trainer trainer(model, batches, options);
      if (!load.empty()) trainer.load(load);
      for (int i = 0; i < updates; ++i) {
        const StepReport report = trainer.update();
        if (communicator->rank() == 0) add(outcome, report);
      }
      const double loss = trainer.evaluate().loss;
      if (!save.empty()) trainer.save(save);
      if (communicator->rank() != 0) return;
      outcome.numbers.push_back(loss);
      outcome.weights = recurrent::copy_of(model.weights());
    });
    return outcome;
  };
  for (std::int64_t accumulate : {1, 2}) {
    const Outcome alone = run({0}, accumulate, 8, "", "");
    CHECK(alone.numbers[0] != alone.numbers[3]);
    for (const std::vector<int>& hosts : {std::vector<int>{0, 0}, {0, 1}, {0, 1, 1}})
      check_same(alone, run(hosts, accumulate, 8, "", ""));
    run({0, 1}, accumulate, 3, "", directory / "states");
    const Outcome continued = run({0, 0, 1}, accumulate, 5, directory / "states", "");
    CHECK(continued.numbers.back() == alone.numbers.back());
    CHECK(recurrent::same_weights(continued.weights, alone.weights));
    check_same(continued, run({0}, accumulate, 5, directory / "states", ""));
    // The states matter.
    Store carried = load_arrays((directory / "states") + "/carried.safetensors");
    CHECK(carried[0].value.shape()[1] == 5);
  }
}

TEST_CASE("near ranks send neither gradients nor weights, far ones send their shares once") {
  const auto sent = [](const std::vector<int>& hosts) {
    const auto ranks = run_ranks(hosts, [&](const std::shared_ptr<Communicator>& communicator) {
      Training training(communicator, 4, 1, 8, 1, "40000");
      Trainer trainer = training.trainer();
      for (int i = 0; i < 3; ++i) trainer.update();
    });
    return static_cast<double>(ranks->sent_bytes);
  };
  const double weights = 3.0 * 13 * 40000 * 4;
  CHECK(sent({0, 0}) < 0.01 * weights);
  // First the weights of rank 0; then in each update, both send half of their gradients and half of the weights.
  CHECK(sent({0, 1}) == doctest::Approx(weights + 3 * 2 * weights).epsilon(0.05));
  // A host gets the weights once, whatever number of ranks it has.
  CHECK(sent({0, 0, 1, 1}) < weights + 3 * 4 * weights);
}

TEST_CASE("the plan counts partial sums over shards and micro-batches") {
  const auto planned = [](std::int64_t shards, std::int64_t accumulate) {
    Training training(nullptr, shards, accumulate, 16, 1, "4096");
    return training.trainer().plan().sum_bytes;
  };
  const std::size_t gradients = std::size_t{3} * 13 * 4096 * 4;
  CHECK(planned(1, 1) == 0);
  CHECK(planned(1, 2) == gradients);
  CHECK(planned(2, 1) == gradients);
  CHECK(planned(4, 1) == 2 * gradients);
  CHECK(planned(8, 3) == 4 * gradients);
}

TEST_CASE("a loss that is not finite ends all ranks with one message, which names the rank") {
  std::vector<std::string> messages(3);
  run_ranks({0, 1, 1}, [&](const std::shared_ptr<Communicator>& communicator) {
    Training training(communicator, 3, 1, 6);
    training.model = Model::parse(tiny::definition, {.hyper = {{"slope", "1e39"}}, .seed = 5}, "tiny.json");
    Trainer trainer = training.trainer();
    try {
      trainer.update();
    } catch (const TrainingError& error) {
      messages[static_cast<std::size_t>(communicator->rank())] = error.what();
    }
  });
  CHECK(messages[0].find("the loss of update 1 is not finite: ") == 0);
  CHECK(messages[0].find("rank 0 on host0") != std::string::npos);
  CHECK(messages[1] == messages[0]);
  CHECK(messages[2] == messages[0]);
}

TEST_CASE("an update that would overflow ends all ranks with one message, and changes nothing") {
  std::vector<std::string> messages(3);
  run_ranks({0, 1, 1}, [&](const std::shared_ptr<Communicator>& communicator) {
    Training training(communicator, 3, 1, 6);
    const std::string large =
        recurrent::with(R"("result": "total, count")", R"("result": "total * 1e24, count")", tiny::definition);
    training.model = Model::parse(large, {.hyper = {}, .seed = 5}, "tiny.json");
    training.options.clip = 0;
    Trainer trainer = training.trainer();
    const Store before = recurrent::copy_of(training.model.weights());
    for (int again = 0; again < 2; ++again) try {
        trainer.update();
      } catch (const TrainingError& error) {
        messages[static_cast<std::size_t>(communicator->rank())] = error.what();
      }
    CHECK(recurrent::same_weights(training.model.weights(), before));
  });
  CHECK(messages[0].find("update 1 would make the second moment of '") == 0);
  CHECK(messages[1] == messages[0]);
  CHECK(messages[2] == messages[0]);
}

TEST_CASE("errors of shards and ranks") {
  const auto message = [](const std::vector<int>& hosts, std::int64_t shards) -> std::string {
    try {
      run_ranks(hosts, [&](const std::shared_ptr<Communicator>& communicator) {
        Training(communicator, shards, 1, 6).trainer();
      });
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(message({0, 0, 0}, 2) == "3 ranks need at least as many shards of a batch, but batch.shards is 2");
  CHECK(message({0}, 0) == "an update has 1 to 65536 shards, not 0");
  CHECK(message({0}, 65537) == "an update has 1 to 65536 shards, not 65537");
  const auto accumulates = [](std::int64_t count) { Training(nullptr, 1, count, 6, 1, "16").trainer(); };
  CHECK_THROWS_WITH_AS(accumulates(0), "an update has 1 to 1048576 micro-batches, not 0", Error);
  CHECK_THROWS_WITH_AS(accumulates(1048577), "an update has 1 to 1048576 micro-batches, not 1048577", Error);
  CHECK_NOTHROW(accumulates(1048576));
  BatchArrays uneven;
  uneven.add("tokens", Array(Dtype::int64, {4, 3}));
  uneven.add("mask", Array(Dtype::boolean, {3, 3}));
  CHECK_THROWS_WITH_AS(
      train::shard_of(uneven, 0, 2),
      "batch.shards must be 1: the array 'mask' of the batch has shape (3, 3), which is not one row for "
      "each of the 4 rows, so it cannot be cut",
      Error);
}

TEST_CASE("a text is evaluated by several ranks as by one") {
  const CharacterTokenizer tokenizer(tiny::sums_text());
  const Tokens tokens = tokenizer.encode(tiny::sums_text());
  const auto measured = [&](const std::shared_ptr<Communicator>& communicator) {
    Model model = Model::parse(tiny::definition, {.hyper = {{"rate", "0"}}, .seed = 5}, "tiny.json");
    return evaluate_text(model, tokens, {300, 100}, communicator);
  };
  const TextEvaluation alone = measured(nullptr);
  CHECK(alone.tokens == static_cast<std::int64_t>(tokens.size()) - 1);
  std::vector<TextEvaluation> of_rank(3);
  run_ranks({0, 0, 1}, [&](const std::shared_ptr<Communicator>& communicator) {
    of_rank[static_cast<std::size_t>(communicator->rank())] = measured(communicator);
  });
  for (const TextEvaluation& each : of_rank) {
    CHECK(each.tokens == alone.tokens);
    CHECK(each.loss == alone.loss);
  }
}
