// Groups of weights in recipes, which one optimiser updates in different ways.
#include <doctest/doctest.h>

#include "recurrent.hpp"
#include "thread_ranks.hpp"
#include "tiny.hpp"

namespace recipe_groups {

using namespace xtape;

namespace {
const std::string recipe_text = R"json({
  "xtape": 2,
  "name": "tiny",
  "definition": "tiny.json",
  "hyper": {"vocab_size": {"from": "vocabulary"}},
  "data": {"kind": "documents", "text": "sums.txt", "separator": "line", "held_out": 20, "prompt_end": "="},
  "batch": {"size": 8, "shards": 2},
  "optimizer": {"kind": "adamw", "betas": [0.9, 0.98], "weight_decay": 0.1, "groups": [
    {"weights": "here.*", "kind": "sgd", "momentum": 0.5, "rate": 10},
    {"weights": "before.*", "weight_decay": 0, "rate": 0.5}
  ]},
  "schedule": {"kind": "constant", "rate": 0.01},
  "steps": 12, "evaluate_every": 4, "clip": 0.5,
  "seed": 3
})json";

Recipe recipe_of(const tiny::Directory& directory, const std::vector<Setting>& settings = {}) {
  directory.write("tiny.json", tiny::definition);
  directory.write("sums.txt", tiny::sums_text());
  return Recipe::load(directory.write("recipe.json", recipe_text), settings);
}

/// The weights after six updates on ranks of these hosts.
Store trained(const tiny::Directory& directory, const std::vector<int>& hosts) {
  Store weights;
  const Recipe recipe = recipe_of(directory);
  testing::run_ranks(hosts, [&](const std::shared_ptr<Communicator>& communicator) {
    const CharacterTokenizer tokenizer(tiny::sums_text());
    const tiny::SumBatches batches(tokenizer, 8);
    Model model = Model::parse(tiny::definition, {.hyper = {}, .seed = 5}, "tiny.json");
    TrainerOptions options = recipe.trainer;
    options.communicator = hosts.size() == 1 ? nullptr : communicator;
    Trainer trainer(model, batches, options);
    for (int i = 0; i < 6; ++i) trainer.update();
    if (communicator->rank() == 0) weights = recurrent::copy_of(model.weights());
  });
  return weights;
}
}  // namespace

TEST_CASE("recipes have groups: what one does not say is as for all weights") {
  const tiny::Directory directory;
  const TrainerOptions options = recipe_of(directory).trainer;
  REQUIRE(options.groups.size() == 2);
  CHECK(options.groups[0].weights == "here.*");
  CHECK(options.groups[0].options.kind == OptimizerOptions::Kind::sgd);
  CHECK(options.groups[0].options.momentum == 0.5);
  CHECK(*options.groups[0].options.rate == 10);
  CHECK(options.groups[0].options.weight_decay == 0);  // that of another kind
  CHECK(options.groups[1].options.kind == OptimizerOptions::Kind::adamw);
  CHECK(options.groups[1].options.beta2 == 0.98);
  CHECK(options.groups[1].options.weight_decay == 0);
  CHECK(options.optimizer.weight_decay == 0.1);
  CHECK_FALSE(options.optimizer.rate.has_value());
}

TEST_CASE("a training with groups has the same bits on any number of ranks, and after a resume") {
  const tiny::Directory directory;
  const Store alone = trained(directory, {0});
  CHECK(recurrent::same_weights(alone, trained(directory, {0, 0})));
  CHECK(recurrent::same_weights(alone, trained(directory, {0, 1})));

  Run whole = Run::create(recipe_of(directory), directory / "whole");
  CHECK(whole.train());
  {
    Run run = Run::create(recipe_of(directory), directory / "stopped");
    Trainer::Callbacks callbacks;
    callbacks.stop = [&] { return run.trainer().step() == 5; };
    CHECK_FALSE(run.train(callbacks));
  }
  Run resumed = Run::resume(directory / "stopped");
  CHECK(resumed.train());
  CHECK(recurrent::same_weights(whole.model().weights(), resumed.model().weights()));
  CHECK_THROWS_WITH_AS(Run::resume(directory / "stopped", {Setting::parse("optimizer.groups=[]")}).trainer(),
                       doctest::Contains("it is from another optimiser or model"), FileError);
  // A group that equals what holds for all changes nothing.
  const auto plain = [&](const char* groups, const char* name) {
    Run run = Run::create(recipe_of(directory, {Setting::parse(std::string("optimizer.groups=") + groups)}),
                          directory / name);
    CHECK(run.train());
    return recurrent::copy_of(run.model().weights());
  };
  CHECK(recurrent::same_weights(plain("[]", "none"), plain(R"([{"weights": "*e*"}])", "same")));
}

TEST_CASE("a frozen group is as 'frozen': no moments, and a smaller norm") {
  const tiny::Directory directory;
  const auto run = [&](const std::vector<Setting>& settings, const char* name) {
    Run run = Run::create(recipe_of(directory, settings), directory / name);
    CHECK(run.trainer().trained().names() == std::vector<std::string>{"before.weight", "out.weight"});
    CHECK(run.train());
    return recurrent::copy_of(run.model().weights());
  };
  const Store by_group = run({Setting::parse(R"(optimizer.groups=[{"weights": "here.*", "frozen": true}])")}, "group");
  const Store by_list = run({Setting::parse("optimizer.groups=[]"), Setting::parse(R"(frozen=["here.*"])")}, "list");
  CHECK(recurrent::same_weights(by_group, by_list));
}

TEST_CASE("errors of groups in recipes name the line") {
  const tiny::Directory directory;
  directory.write("tiny.json", tiny::definition);
  directory.write("sums.txt", tiny::sums_text());
  const auto complaint = [&](const std::string& part, const std::string& by) -> std::string {
    std::string text = recipe_text;
    const std::size_t at = text.find(part);
    REQUIRE(at != std::string::npos);
    try {
      Run::create(Recipe::load(directory.write("recipe.json", text.replace(at, part.size(), by))), directory / "run");
    } catch (const DefinitionError& error) {
      return error.what();
    }
    return "";
  };
  const auto has = [&](const std::string& part, const std::string& by, const char* text) {
    const std::string found = complaint(part, by);
    CAPTURE(found);
    CHECK(found.find(text) != std::string::npos);
  };
  has("\"rate\": 10", "\"rate\": -1", "recipe.json, line 9: 'optimizer.groups.0.rate' must be at least 0");
  has("\"weight_decay\": 0, ", "\"weight_decai\": 0, ",
      "recipe.json, line 10: 'optimizer.groups.1.weight_decai' is not a known key; did you mean 'weight_decay'?");
  has("\"weights\": \"here.*\", ", "", "recipe.json, line 9: 'optimizer.groups.0' needs the key 'weights'");
  has("\"kind\": \"sgd\"", "\"kind\": \"sdg\"", "recipe.json, line 9: 'optimizer.groups.0.kind' must be ");
  has("\"rate\": 0.5", "\"frozen\": true",
      "'optimizer.groups.1.weight_decay' has no effect on weights that are 'frozen'");
  has("here.*", "heer.*", "'optimizer.groups': no weight of model 'tiny' matches 'heer.*'");
  has("\"groups\": [", "\"groups\": 5, \"x\": [", "'optimizer.groups' must be a list of objects, or one object, not 5");
}

}  // namespace recipe_groups
