#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "base/system/system.hpp"
#include "needs.hpp"
#include "sum_batches.hpp"
#include "tiny.hpp"

using namespace xtape;

namespace {
struct Setup {
  explicit Setup(std::int64_t rows, const std::string& dropout = "0.2",
                 const std::string& definition = tiny::definition)
      : tokenizer(tiny::sums_text()),
        batches(tokenizer, rows),
        model(Model::parse(definition, {.hyper = {{"rate", dropout}}, .seed = 5}, "tiny.json")) {}
  CharacterTokenizer tokenizer;
  tiny::SumBatches batches;
  Model model;
};

TrainerOptions options_of(std::int64_t accumulate = 1) {
  TrainerOptions options;
  options.optimizer.weight_decay = 0.1;
  options.schedule = {.kind = ScheduleOptions::Kind::cosine, .rate = 0.05, .warmup = 2, .steps = 20};
  options.accumulate = accumulate;
  options.clip = 0.5;
  options.seed = 9;
  options.threads = 2;
  return options;
}

bool same_bits(const Store& a, const Store& b) {
  for (const Store::Entry& entry : a)
    if (std::memcmp(entry.value.data(), b.at(entry.name).data(), entry.value.bytes()) != 0) return false;
  return a.size() == b.size() && a.size() > 0;
}

double largest_difference(const Store& a, const Store& b) {
  double largest = 0;
  for (const Store::Entry& entry : a)
    for (std::int64_t i = 0; i < entry.value.count(); ++i)
      largest = std::max<double>(largest, std::abs(entry.value.as<float>()[i] - b.at(entry.name).as<float>()[i]));
  return largest;
}

Store copy_of(const Store& store) {
  Store copy;
  for (const Store::Entry& entry : store) copy.add(entry.name, entry.value.clone());
  return copy;
}
}  // namespace

TEST_CASE("within a memory limit, the first update gives back what was freed since the plan was made" *
          needs_no_sanitizer()) {
  Setup setup(8);
  TrainerOptions options = options_of();
  options.memory = std::size_t{64} << 30;
  Trainer trainer(setup.model, setup.batches, options);
  // Each is smaller than what malloc maps, and larger than free pieces that share a page with others, which stay
  // resident.
  std::vector<std::unique_ptr<char[]>> pieces;
  for (int i = 0; i < 400; ++i) pieces.push_back(std::make_unique<char[]>(100'000));
  // Keeps the end of the heap in use, so that free() gives nothing back itself.
  const std::unique_ptr<char[]> last =
      std::move(*std::ranges::max_element(pieces, {}, [](const auto& piece) { return piece.get(); }));
  pieces.clear();
  const std::size_t before = resident_bytes();
  trainer.update();
  CHECK(resident_bytes() + 30'000'000 < before);
}

TEST_CASE("a schedule ends with the update that completes its epochs") {
  struct Epochs : tiny::SumBatches {
    using SumBatches::SumBatches;
    std::int64_t epoch_batches() const override { return 8; }
  };
  Setup setup(8, "0");
  const Epochs batches(setup.tokenizer, 8);
  TrainerOptions options = options_of(3);
  options.schedule = {.kind = ScheduleOptions::Kind::linear, .rate = 0.5, .warmup = 1, .epochs = 2};
  Trainer trainer(setup.model, batches, options);
  constexpr std::int64_t updates = 6;  // of 3 micro-batches; two epochs have 16
  double last = 1;
  for (std::int64_t step = 1; step <= updates; ++step) {
    last = trainer.update().rate;
    CHECK((last > 0) == (step < updates));
  }
  CHECK(last == 0);
  CHECK(trainer.epoch() == 2);

  options.schedule.warmup = updates + 1;
  CHECK_THROWS_WITH_AS(Trainer(setup.model, batches, options),
                       "schedule: 2 epochs of this data are 6 updates, fewer than the 7 of schedule.warmup", Error);
  CHECK_THROWS_AS(Trainer(setup.model, setup.batches, options), Error);  // its batches have no epochs
}

TEST_CASE("accumulated micro-batches equal the big batch") {
  Setup small(8, "0");
  Setup big(24, "0");
  Trainer accumulating(small.model, small.batches, options_of(3));
  Trainer whole(big.model, big.batches, options_of(1));
  const Store start = copy_of(big.model.weights());
  CHECK(same_bits(small.model.weights(), start));
  for (int i = 0; i < 5; ++i) {
    const StepReport a = accumulating.update();
    const StepReport b = whole.update();
    CHECK(a.tokens == b.tokens);
    CHECK(a.tokens < 72);  // rows have 2 or 3 targets, so a mean of means would be wrong
    CHECK(a.loss == doctest::Approx(b.loss).epsilon(1e-6));
    CHECK(a.norm == doctest::Approx(b.norm).epsilon(1e-5));
  }
  CHECK(largest_difference(small.model.weights(), big.model.weights()) < 1e-5);
  CHECK(largest_difference(start, big.model.weights()) > 1e-2);
}

TEST_CASE("a trainer continued from a checkpoint gives the same bits as an uninterrupted one") {
  for (const std::int64_t accumulate : {1, 2}) {
    const tiny::Directory directory;
    Setup straight(8);
    Trainer first(straight.model, straight.batches, options_of(accumulate));
    std::vector<double> losses;
    for (int i = 0; i < 11; ++i) {
      if (i == 5) first.save(directory / "checkpoint");
      losses.push_back(first.update().loss);
    }
    Setup other(8);
    Trainer second(other.model, other.batches, options_of(accumulate));
    second.update();
    second.load(directory / "checkpoint");
    CHECK(second.step() == 5);
    for (int i = 5; i < 11; ++i) CHECK(second.update().loss == losses[static_cast<std::size_t>(i)]);
    CHECK(same_bits(straight.model.weights(), other.model.weights()));
  }
}

TEST_CASE("the number of threads does not change any bit") {
  Setup a(8);
  Setup b(8);
  TrainerOptions one = options_of();
  one.threads = 1;
  Trainer first(a.model, a.batches, one);
  Trainer second(b.model, b.batches, options_of());
  for (int i = 0; i < 4; ++i) CHECK(first.update().loss == second.update().loss);
  CHECK(same_bits(a.model.weights(), b.model.weights()));
}

TEST_CASE("a checkpoint with another seed, optimiser or model is an error and changes nothing") {
  const tiny::Directory directory;
  Setup setup(8);
  Trainer trainer(setup.model, setup.batches, options_of());
  trainer.update();
  trainer.save(directory / "checkpoint");
  TrainerOptions other_seed = options_of();
  other_seed.seed = 10;
  Setup fresh(8);
  const Store before = copy_of(fresh.model.weights());
  CHECK_THROWS_WITH_AS(Trainer(fresh.model, fresh.batches, other_seed).load(directory / "checkpoint"),
                       doctest::Contains("is from a run with seed 9, not 10"), FileError);
  Setup wider(8);
  wider.model = Model::parse(tiny::definition, {.hyper = {{"width", "8"}}}, "tiny.json");
  CHECK_THROWS_AS(Trainer(wider.model, wider.batches, options_of()).load(directory / "checkpoint"), FileError);
  CHECK_THROWS_AS(Trainer(fresh.model, fresh.batches, options_of()).load(directory / "none"), FileError);
  std::ofstream(directory / "checkpoint/weights.safetensors", std::ios::trunc) << "short";
  Trainer again(fresh.model, fresh.batches, options_of());
  CHECK_THROWS_AS(again.load(directory / "checkpoint"), FileError);
  CHECK(again.step() == 0);
  CHECK(same_bits(fresh.model.weights(), before));
}

TEST_CASE("the error for a non-finite loss names the op and its line, and the weights do not change") {
  Setup setup(8, "0");
  Array out = setup.model.weight("out.weight");
  std::fill_n(out.as<float>(), out.count(), 3e38F);
  const Store before = copy_of(setup.model.weights());
  for (const std::int64_t accumulate : {1, 2}) {
    Trainer trainer(setup.model, setup.batches, options_of(accumulate));
    std::string message;
    try {
      trainer.update();
    } catch (const TrainingError& error) {
      message = error.what();
    }
    CHECK_MESSAGE(message.find("the loss of update 1 is not finite") != std::string::npos, message);
    CHECK_MESSAGE(message.find("einsum") != std::string::npos, message);
    CHECK_MESSAGE(message.find("tiny.json") != std::string::npos, message);
    CHECK_MESSAGE(message.find("line 23") != std::string::npos, message);
    CHECK(trainer.step() == 0);
    CHECK(same_bits(setup.model.weights(), before));
  }
}

TEST_CASE("a profile has the times of an update") {
  Setup setup(8);
  TrainerOptions options = options_of(2);
  CHECK_THROWS_WITH_AS(Trainer(setup.model, setup.batches, options).profile(1),
                       "profiling needs the trainer's option 'profile'", Error);
  options.profile = true;
  Trainer trainer(setup.model, setup.batches, options);
  CHECK_THROWS_AS(trainer.profile(0), Error);
  const TrainingProfile profile = trainer.profile(3);
  CHECK(profile.updates == 3);
  CHECK(trainer.step() == 6);
  double inside = profile.batch_seconds + profile.optimizer_seconds;
  CHECK(profile.batch_seconds > 0);
  CHECK(profile.optimizer_seconds > 0);
  bool of_a_part = false;
  for (const TrainingProfile::Step& step : profile.steps) {
    CHECK(step.calls == 6);  // two micro-batches per update
    CHECK(step.bytes > 0);
    inside += step.seconds;
    of_a_part = of_a_part || (step.op == "take" && step.module == "before");
  }
  CHECK(of_a_part);
  CHECK(inside > 0);
  CHECK(inside <= profile.seconds);
}

TEST_CASE("fit calls back per step and per evaluation, and stops on request") {
  Setup setup(8);
  Trainer trainer(setup.model, setup.batches, options_of());
  std::vector<std::int64_t> steps;
  std::vector<std::int64_t> evaluations;
  Trainer::Callbacks callbacks;
  callbacks.step = [&](const StepReport& report) { steps.push_back(report.step); };
  callbacks.evaluation = [&](const Evaluation& evaluation) { evaluations.push_back(evaluation.step); };
  callbacks.stop = [&] { return steps.size() == 3; };
  CHECK(!trainer.fit({.steps = 7, .evaluate_every = 2}, callbacks));
  CHECK(trainer.step() == 3);
  callbacks.stop = nullptr;
  CHECK(trainer.fit({.steps = 7, .evaluate_every = 2}, callbacks));
  CHECK(steps == std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7});
  CHECK(evaluations == std::vector<std::int64_t>{2, 4, 6, 7});
}

TEST_CASE("an evaluation counts each target once, for any batch size, without dropout") {
  Setup reference(20);
  const Evaluation whole = evaluate(reference.model, reference.batches);
  const std::int64_t targets = reference.batches.held_out_targets();
  CHECK(whole.tokens == targets);
  CHECK(!whole.exact_match);
  CHECK(evaluate(reference.model, reference.batches).loss == whole.loss);
  for (const std::int64_t rows : {1, 7, 32}) {
    Setup setup(rows);
    const Evaluation evaluation = evaluate(setup.model, setup.batches);
    CHECK(evaluation.tokens == targets);
    CHECK(evaluation.loss == doctest::Approx(whole.loss).epsilon(1e-6));
  }
  // The loss of an untrained model is about that of a guess among 13.
  CHECK(whole.loss == doctest::Approx(std::log(13.0)).epsilon(0.3));
  CHECK(sampled_loss(reference.model, reference.batches, 4) == doctest::Approx(whole.loss).epsilon(0.2));
}

TEST_CASE("training lowers the loss") {
  Setup setup(16, "0");
  Trainer trainer(setup.model, setup.batches, options_of());
  const double before = trainer.evaluate().loss;
  double norm = 0;
  for (int i = 0; i < 20; ++i) norm = trainer.update().norm;
  CHECK(norm > 0);
  CHECK(trainer.evaluate().loss < 0.8 * before);
}

TEST_CASE("a loss with one result is the mean over the rows of a batch") {
  std::string text = tiny::definition;
  const std::string results = "\"result\": \"total, count\"";
  text.replace(text.find(results), results.size(), "\"result\": \"total / count\"");
  Setup sums(8, "0"), means(8, "0", text);
  Trainer one(sums.model, sums.batches, options_of()), other(means.model, means.batches, options_of());
  for (int i = 0; i < 3; ++i) {
    const StepReport a = one.update(), b = other.update();
    CHECK(b.loss == doctest::Approx(a.loss).epsilon(1e-5));
    CHECK(b.norm == doctest::Approx(a.norm).epsilon(1e-4));
    CHECK(b.tokens == 8);
  }
}

TEST_CASE("a definition whose functions do not fit the data is an error") {
  const auto with = [](const std::string& from, const std::string& to) {
    std::string text = tiny::definition;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  const auto refused = [](const std::string& definition, const std::string& part) {
    Setup setup(8, "0", definition);
    CHECK_THROWS_WITH_AS(Trainer(setup.model, setup.batches, options_of()), doctest::Contains(part.c_str()),
                         DefinitionError);
  };
  refused(
      with("\"result\": \"total, count\"", "\"result\": \"logits(tokens)\""),
      "must have two results of one element, a sum over the targets and their count, as cross_entropy has, or one, ");
  refused(with("\"targets\": \"int [b, t]\"", "\"targets\": \"int [b]\""), "is int64 of rank 1, got int64 (8, ");
}
