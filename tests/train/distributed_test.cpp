#include "xtape/distributed.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "ranks/gradient_sum.hpp"
#include "ranks/rank_group.hpp"
#include "ranks/shard_tree.hpp"
#include "recurrent.hpp"
#include "thread_ranks.hpp"
#include "tiny.hpp"
#include "train/trainer/carried.hpp"

using namespace xtape;
using testing::run_ranks;

namespace {
/// The sum that the documentation states, computed level by level: neighbours are added until one number is left.
double sum_by_levels(std::vector<double> values) {
  while (values.size() > 1) {
    std::vector<double> next;
    for (std::size_t i = 0; i < values.size(); i += 2)
      next.push_back(i + 1 < values.size() ? values[i] + values[i + 1] : values[i]);
    values = next;
  }
  return values[0];
}

/// Numbers whose sum depends on the order of addition.
std::vector<double> uneven(std::int64_t count) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(std::pow(-7.3, static_cast<double>(i % 19)) / 3);
  return values;
}

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

TEST_CASE("shards are added by one tree, whoever computes them") {
  for (std::int64_t shards : {1, 2, 3, 4, 5, 6, 7, 8, 13, 16, 31, 64}) {
    const std::vector<double> values = uneven(shards);
    const double whole = sum_by_levels(values);
    CHECK(ranks::tree_sum(values.data(), shards) == whole);
    for (int ranks = 1; ranks <= std::min<std::int64_t>(shards, 9); ++ranks) {
      // The subtrees that ranks compute cover all shards in order, and each rank needs few slots.
      std::int64_t next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const ranks::Shards own = ranks::shards_of(rank, ranks, shards);
        CHECK(own.first == next);
        ranks::TreeStack stack(shards);
        std::vector<double> slots(20, 0);
        for (std::int64_t shard = own.first; shard < own.last; ++shard) {
          const int slot = stack.next_slot();
          slots[static_cast<std::size_t>(slot)] = values[static_cast<std::size_t>(shard)];
          const int lefts = stack.push({shard, shard + 1});
          for (int k = 1; k <= lefts; ++k)
            slots[static_cast<std::size_t>(slot - k)] += slots[static_cast<std::size_t>(slot - k + 1)];
        }
        const std::vector<ranks::Shards> tops = ranks::tops_of(own, shards);
        REQUIRE(stack.tops().size() == tops.size());
        for (std::size_t i = 0; i < tops.size(); ++i) {
          CHECK(stack.tops()[i] == tops[i]);
          CHECK(tops[i].first == next);
          next = tops[i].last;
          CHECK(slots[i] == sum_by_levels({values.begin() + tops[i].first, values.begin() + tops[i].last}));
        }
        CHECK(ranks::slots_for(own, shards) <= 2 + std::log2(static_cast<double>(shards)));
      }
      CHECK(next == shards);
    }
  }
}

TEST_CASE("the pieces of every bucket are dealt to all ranks, each once") {
  Store weights;
  for (const auto& [name, count] : std::vector<std::pair<std::string, std::int64_t>>{
           {"a", 3000000}, {"b", 7}, {"c", 0}, {"d", 40000}, {"e", 1500000}, {"f", 1}})
    weights.add(name, Array(Dtype::float32, {count}));
  for (int ranks : {1, 2, 3, 8}) {
    const ranks::GradientLayout layout = ranks::layout_of(weights, {5, 3, 4, 2, 1, 0}, ranks);
    CHECK(layout.weight_at[5] == 0);
    std::vector<std::int64_t> elements(static_cast<std::size_t>(ranks), 0);
    std::size_t pieces = 0;
    for (const auto& bucket : layout.buckets) {
      pieces += bucket.pieces.size();
      for (std::size_t piece : bucket.pieces) {
        const auto owner = static_cast<std::size_t>(layout.owner[piece]);
        elements[owner] += layout.pieces[piece].count;
        const ranks::Bytes& range = bucket.of_rank[owner];
        CHECK(layout.piece_at[piece] >= range.first);
        CHECK(layout.piece_at[piece] + static_cast<std::size_t>(layout.pieces[piece].count) * 4 <= range.last);
        for (std::size_t other = 0; other < bucket.of_rank.size(); ++other)
          if (other != owner && bucket.of_rank[other].count() > 0)
            CHECK((layout.piece_at[piece] < bucket.of_rank[other].first ||
                   layout.piece_at[piece] >= bucket.of_rank[other].last));
      }
    }
    CHECK(pieces == layout.pieces.size());
    for (std::int64_t each : elements) CHECK(each > 4540008 / ranks - 3 * Piece::most);
  }
}

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

TEST_CASE("each rank holds the moments of its share, and what gradients take is known") {
  std::vector<std::size_t> moments(4), gradients(4);
  run_ranks({0, 0, 0, 0}, [&](const std::shared_ptr<Communicator>& communicator) {
    Model model = Model::parse(tiny::definition, {.hyper = {{"width", "40000"}}}, "tiny.json");
    DistributedOptimizer optimizer(model, model.weights().names(), {{}, 4, 1, communicator, 1});
    optimizer.arrange(Vars(model.weights().size()));
    moments[static_cast<std::size_t>(communicator->rank())] = optimizer.moment_bytes();
    gradients[static_cast<std::size_t>(communicator->rank())] = optimizer.gradient_bytes();
  });
  const std::size_t weights = std::size_t{3} * 13 * 40000 * 4;
  std::size_t total = 0;
  for (std::size_t bytes : moments) {
    CHECK(bytes < weights * 2 / 3);
    total += bytes;
  }
  CHECK(total == 2 * weights);
  for (std::size_t bytes : gradients) CHECK(bytes == weights);  // near ranks read each other's
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

TEST_CASE("what ranks have in common is compared, and a difference is shown") {
  const std::string long_text(5000, 'x');
  std::vector<std::string> messages(3);
  run_ranks({0, 0, 1}, [&](const std::shared_ptr<Communicator>& communicator) {
    ranks::RankGroup group(communicator);
    ranks::check_agreement(group, "recipe", long_text);
    try {
      ranks::check_agreement(group, "recipe", long_text + (group.rank() == 2 ? "b" : "a") + long_text);
    } catch (const Error& error) {
      messages[static_cast<std::size_t>(group.rank())] = error.what();
    }
  });
  CHECK(messages[0].find("all ranks must have the same recipe: rank 0 on host0 has …xxx") == 0);
  CHECK(messages[0].find("xab") == std::string::npos);
  CHECK(messages[0].find("rank 2 on host1 has …") != std::string::npos);
  CHECK(messages[0].size() < 400);
  CHECK(messages[1] == messages[0]);
  CHECK(messages[2] == messages[0]);
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
  Model model = recurrent::model_of();
  DistributedOptimizer optimizer(model, model.weights().names(), {});
  CHECK_THROWS_WITH_AS(optimizer.begin(1), "DistributedOptimizer: arrange() must be called first", Error);
  optimizer.arrange(Vars(model.weights().size()));
  CHECK_THROWS_WITH_AS(optimizer.sum({1}),
                       "DistributedOptimizer: begin() and the plays of all own shards must come before sum()", Error);
  optimizer.begin(1);
  CHECK_THROWS_AS(optimizer.sum({1}), Error);  // the shard has not been played
  CHECK_THROWS_WITH_AS(optimizer.add(), "DistributedOptimizer: expect() and a play must come before add()", Error);
  CHECK_THROWS_WITH_AS(optimizer.update(0.1), "DistributedOptimizer: sum() must be called before update()", Error);
  for (const double bad : {-1.0, std::nan(""), HUGE_VAL})
    CHECK_THROWS_WITH_AS(optimizer.update(0.1, 1, 0, {bad, 0, 0}),
                         doctest::Contains("the deviation of the noise must be"), Error);
  CHECK_THROWS_WITH_AS(optimizer.begin(2), "an update has 1 to 1 shards with rows, not 2", Error);
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

TEST_CASE("the expected time of an update on several hosts") {
  // One update of one host: 8 shards of 0.1 s, and 0.2 s for the weights.
  TrainingProfile profile;
  profile.updates = 2;
  profile.seconds = 2;
  profile.optimizer_seconds = 0.4;
  profile.shards = 8;
  profile.trained_bytes = 400'000'000;
  CHECK(predict_update(profile, {}).seconds == doctest::Approx(1));
  // A slow network: 4 hosts send 3/4 of the gradients, and of the weights, in 3 s.
  const UpdatePrediction slow = predict_update(profile, {4, 1e8, 0.01});
  CHECK(slow.plays == doctest::Approx(0.2));
  CHECK(slow.reduce_scatter == doctest::Approx(3));
  CHECK(slow.update == doctest::Approx(0.05));
  CHECK(slow.all_gather == doctest::Approx(3));
  CHECK(slow.seconds == doctest::Approx(0.2 - 0.2 / 3 + 3 + 0.05 + 3 + 0.04));
  CHECK(slow.speed_up == doctest::Approx(1 / slow.seconds));
  // On a fast one the plays decide.
  CHECK(predict_update(profile, {8, 1e12, 0}).seconds == doctest::Approx(0.1 + 0.025).epsilon(0.01));
  // Three hosts compute 3, 3 and 2 shards, and send two subtrees.
  const UpdatePrediction three = predict_update(profile, {3, 1e8, 0});
  CHECK(three.plays == doctest::Approx(0.3));
  CHECK(three.reduce_scatter == doctest::Approx(2 * 2.667).epsilon(0.01));
  CHECK_THROWS_WITH_AS(predict_update(profile, {9, 1e8, 0}),
                       "9 ranks need at least as many shards of a batch, but batch.shards is 8", Error);
  CHECK_THROWS_AS(predict_update(profile, {2, 0, 0}), Error);
}
