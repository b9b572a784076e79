// What a training does with numbers that are not finite outside the loss and the gradients of an update.
#include <doctest/doctest.h>

#include <filesystem>
#include <functional>

#include "recurrent.hpp"
#include "thread_ranks.hpp"
#include "tiny.hpp"

using namespace xtape;
using recurrent::with;
namespace fs = std::filesystem;

namespace {
/// A tiny model with batches of sums.
struct FailingSetup {
  explicit FailingSetup(const std::string& definition)
      : model(Model::parse(definition, {.hyper = {}, .seed = 5}, "tiny.json")) {}
  CharacterTokenizer tokenizer{tiny::sums_text()};
  tiny::SumBatches batches{tokenizer, 8};
  Model model;
};

/// The loss is NaN outside training alone.
std::string bad_in_evaluations() {
  return with(R"("result": "total, count")",
              R"end("result": "total if training else total + log(-1 - total * total), count")end", tiny::definition);
}

/// The state overflows at the third window of an epoch; the loss reads only its tanh.
std::string overflowing_state() {
  return recurrent::with("logits, last = read(tokens, h)\"",
                         "logits, last = read(tokens, tanh(h))\", \"last = h * 1e30 + 1\"");
}

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const TrainingError& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  const bool found = text.find(part) != std::string::npos;
  CHECK_MESSAGE(found, "'" << part << "' in: " << text);
  return found;
}
}  // namespace

TEST_CASE("a loss that is NaN in an evaluation alone ends the run, which keeps its updates and can go on") {
  const tiny::Directory directory;
  tiny::load(directory);
  directory.write("tiny.json", bad_in_evaluations());
  const Recipe recipe = Recipe::load(directory / "recipe.json", {Setting::parse("measure=[]")});
  Run run = Run::create(recipe, directory / "run");
  CHECK_THROWS_AS(run.train(), EvaluationError);
  CHECK(run.trainer().step() == 5);
  CHECK(fs::exists(directory / "run/checkpoints/00000005/weights.safetensors"));
  CHECK(Capsule::load(directory / "run/capsule").failure.op == "log");
  const SavedPlay whole = load_play(directory / "run/failed_play");
  CHECK(whole.outputs[0].name == "loss");
  const std::optional<Capsule> again = find_failure(whole.play);
  REQUIRE(again);
  CHECK(again->failure.op == "log");
  const std::string message = message_of([&] { Run::open(directory / "run").evaluate(); });
  contains(message, "the loss of the evaluation, in its batch 1, is not finite: NaN in #");
  contains(message, "log -> float32 ()");
  contains(message, "function 'loss'");
  // The evaluation is made again first; with a mended definition the run continues.
  CHECK_THROWS_AS(Run::resume(directory / "run").train(), EvaluationError);
  directory.write("run/definition.json", with("log(", "exp(", read_text(directory / "run/definition.json")));
  Run mended = Run::resume(directory / "run");
  CHECK(mended.train());
  CHECK(mended.trainer().step() == 12);
}

TEST_CASE("an evaluation that is not finite names update, batch and call, and changes nothing") {
  FailingSetup setup(bad_in_evaluations());
  Model& model = setup.model;
  Trainer trainer(model, setup.batches, {});
  trainer.update();
  const Store before = recurrent::copy_of(model.weights());
  contains(message_of([&] { trainer.evaluate(); }),
           "the loss of the evaluation after update 1, in its batch 1, is not finite: ");
  CHECK(recurrent::same_weights(model.weights(), before));
  CHECK(trainer.update().step == 2);
  contains(message_of([&] { sampled_loss(model, setup.batches, 2); }), "is not finite");
  CHECK_THROWS_AS(sampled_loss(model, setup.batches, 0), Error);
}

TEST_CASE("a call that throws in an evaluation alone ends the run, which keeps its updates") {
  const tiny::Directory directory;
  tiny::load(directory);
  directory.write("tiny.json",
                  with(R"("result": "total, count")",
                       R"("result": "total if training else watch(total, total < 0), count")", tiny::definition));
  const Recipe recipe = Recipe::load(directory / "recipe.json", {Setting::parse("measure=[]")});
  Run run = Run::create(recipe, directory / "run");
  std::string message;
  try {
    run.train();
  } catch (const EvaluationError& error) {
    message = error.what();
  }
  contains(message, "the evaluation after update 5, in its batch 1: ");
  contains(message, "watch: the condition is false at []");
  contains(message, "run/capsule' has what is needed to play it again");
  CHECK(run.trainer().step() == 5);
  CHECK(fs::exists(directory / "run/checkpoints/00000005/weights.safetensors"));
  CHECK(Capsule::load(directory / "run/capsule").failure.op == "watch");
}

namespace {
/// Batches of sums of which the first token of each validation batch is given.
class MarkedBatches : public tiny::SumBatches {
 public:
  MarkedBatches(const Tokenizer& tokenizer, std::vector<std::int64_t> marks)
      : SumBatches(tokenizer, 8), marks_(std::move(marks)) {}
  void validation(std::int64_t index, BatchArrays& batch) const override {
    SumBatches::validation(index, batch);
    *batch.at("tokens").as<std::int64_t>() = marks_[static_cast<std::size_t>(index)];
  }

 private:
  std::vector<std::int64_t> marks_;
};

/// The errors of evaluations of the ranks. Their evaluation is NaN for the marks 9 and 0, by other ops.
std::vector<std::string> evaluated(const std::vector<int>& hosts, const std::vector<std::int64_t>& marks) {
  const std::string loss = R"end("result": "total if training else total + log(8.5 - cast(tokens[0, 0], 'float32')))end"
                           R"end( + sqrt(cast(tokens[0, 0], 'float32') - 0.5), count")end";
  std::vector<std::string> messages(hosts.size());
  testing::run_ranks(hosts, [&](const std::shared_ptr<Communicator>& communicator) {
    const CharacterTokenizer tokenizer(tiny::sums_text());
    const MarkedBatches batches(tokenizer, marks);
    Model model = Model::parse(with(R"("result": "total, count")", loss, tiny::definition), {.hyper = {}, .seed = 5},
                               "tiny.json");
    TrainerOptions options;
    options.shards = 4;
    options.threads = 1;
    options.communicator = communicator;
    Trainer trainer(model, batches, options);
    try {
      trainer.evaluate();
    } catch (const EvaluationError& error) {
      messages[static_cast<std::size_t>(communicator->rank())] = error.what();
    }
    CHECK(trainer.update().step == 1);
  });
  for (const std::string& each : messages) CHECK(each == messages[0]);
  return messages;
}
}  // namespace

TEST_CASE("all ranks leave an evaluation together if a call throws on one of them") {
  for (const std::vector<int>& hosts : std::vector<std::vector<int>>{{0}, {0, 0}, {0, 0, 1}, {0, 0, 1, 1}}) {
    const std::string message = evaluated(hosts, {5, 99, 77})[0];
    contains(message, "the evaluation after update 0, in its batch 2: here (tiny.json");
    contains(message, "take: index 99");
    CHECK((message.find("on rank ") != std::string::npos) == (hosts.size() > 1));
  }
}

TEST_CASE("the call that is named is that of the batch that is named, whatever fails later on other ranks") {
  const std::string message = evaluated({0, 1}, {5, 9, 0})[0];
  contains(message, "in its batch 2, is not finite: NaN in #");
  contains(message, " log -> ");
  contains(message, "on rank 1 on host1");
}

TEST_CASE("a carried state that is not finite is found while the loss is finite") {
  const TextBatches batches = recurrent::batches_of(2, 8);
  for (const std::int64_t accumulate : {1, 3}) {
    Model model = recurrent::model_of("0", overflowing_state());
    Trainer trainer(model, batches, recurrent::options_of(accumulate));
    const std::int64_t good = 3 / accumulate - 1;
    for (std::int64_t i = 0; i < good; ++i) trainer.update();
    const Store before = recurrent::copy_of(model.weights());
    const std::string message = message_of([&] { trainer.update(); });
    contains(message, "the carried state 'h' of update " + std::to_string(good + 1) + " is not finite: inf in #");
    contains(message, " mul -> float32 (2, 2, 6)");
    CHECK(trainer.step() == good);
    CHECK(recurrent::same_weights(model.weights(), before));
  }
  Model model = recurrent::model_of("0", overflowing_state());
  contains(message_of([&] { evaluate(model, batches); }),
           "the carried state of the evaluation, in its batch 3, is not finite: inf in #");
}

TEST_CASE("gradients whose squares overflow end the training before it changes anything") {
  const std::string large = with(R"("result": "total, count")", R"("result": "total * 1e24, count")", tiny::definition);
  const tiny::Directory directory;
  for (const bool clipped : {false, true}) {
    FailingSetup setup(large);
    Model& model = setup.model;
    TrainerOptions options;
    options.clip = clipped ? 1 : 0;
    options.failed_play = directory / "failed_play";
    Trainer trainer(model, setup.batches, options);
    const Store before = recurrent::copy_of(model.weights());
    if (clipped) {  // the gradients that the optimiser gets are small
      CHECK(trainer.update().step == 1);
      continue;
    }
    const std::string message = message_of([&] { trainer.update(); });
    contains(message, "update 1 would make the second moment of '");
    contains(message, "inf at [");
    CHECK(trainer.step() == 0);
    CHECK(recurrent::same_weights(model.weights(), before));
    const SavedPlay whole = load_play(directory / "failed_play");
    Player player(whole.play.tape, whole.play.outputs, whole.play.options);
    std::vector<Feed> feeds;
    for (const ValueId input : whole.play.tape.inputs())
      feeds.emplace_back(whole.play.tape.var(input), *whole.play.inputs.find(whole.play.tape.var(input).node().name));
    player.play(feeds, whole.play.step);
    CHECK(range_of(player.view(whole.outputs.at("grad.out.weight"))).magnitude() > 1e19);
  }
}
