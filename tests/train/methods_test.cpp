// Trainings with methods beside SGD and Adam: their bits on ranks, and their checkpoints.
#include <doctest/doctest.h>

#include "recurrent.hpp"
#include "run_files.hpp"
#include "thread_ranks.hpp"
#include "tiny.hpp"
#include "xtape/safetensors.hpp"

namespace methods {

using namespace xtape;

namespace {
/// Optimisers for which the weights of the tiny model, of width 400, have moments of every kind.
const std::vector<std::string> optimizers = {
    R"({"kind": "lion", "weight_decay": 0.1})",
    R"({"kind": "rmsprop", "momentum": 0.9, "centered": true, "groups": [{"weights": "*", "rate": 0.05}]})",
    R"({"kind": "adafactor", "weight_decay": 0.1})",
    R"({"kind": "muon", "weight_decay": 0.1, "groups": [{"weights": "out.*", "kind": "adamw", "rate": 0.5}]})",
    R"({"kind": "adamw", "eight_bits": true})",
    R"({"kind": "adafactor", "groups": [{"weights": "before.*", "frozen": true},
                                         {"weights": "out.*", "kind": "adam", "eight_bits": true}]})",
};

Recipe recipe_of(const tiny::Directory& directory, const std::string& optimizer) {
  return tiny::load(directory, {{"optimizer", optimizer},
                                {"hyper.width", "400"},
                                {"batch.shards", "2"},
                                {"steps", "6"},
                                {"measure", "null"},
                                {"schedule.rate", "0.01"},
                                {"schedule.final_rate", "0.001"}});
}

/// Trains on ranks of these hosts. Rank 0 returns the last checkpoint.
std::string trained(const tiny::Directory& directory, const Recipe& recipe, const std::string& name,
                    const std::vector<int>& hosts, std::int64_t stop = 0) {
  const std::string run = directory / name;
  testing::run_ranks(hosts, [&](const std::shared_ptr<Communicator>& communicator) {
    const std::shared_ptr<Communicator> ranks = hosts.size() == 1 ? nullptr : communicator;
    Run training = std::filesystem::exists(run + "/recipe.json") ? Run::resume(run, {}, {}, ranks)
                                                                 : Run::create(recipe, run, ranks);
    Trainer::Callbacks callbacks;
    callbacks.stop = [&] { return stop > 0 && training.trainer().step() == stop; };
    training.train(callbacks);
  });
  return run + "/checkpoints/" + names(run).back();
}
}  // namespace

TEST_CASE("every method trains with the same bits on any number of ranks, and after a resume on others") {
  for (const std::string& optimizer : optimizers) {
    CAPTURE(optimizer);
    const tiny::Directory directory;
    const Recipe recipe = recipe_of(directory, optimizer);
    const std::string alone = trained(directory, recipe, "alone", {0});
    CHECK(same_bits(alone, trained(directory, recipe, "host", {0, 0})));
    CHECK(same_bits(alone, trained(directory, recipe, "hosts", {0, 1})));
    trained(directory, recipe, "stopped", {0, 1}, 3);
    CHECK(same_bits(alone, trained(directory, recipe, "stopped", {0})));
    trained(directory, recipe, "grown", {0}, 4);
    CHECK(same_bits(alone, trained(directory, recipe, "grown", {0, 0})));
  }
}

TEST_CASE("a training goes down with every method, and its ledger replays") {
  for (const std::string& optimizer : optimizers) {
    CAPTURE(optimizer);
    const tiny::Directory directory;
    trained(directory, recipe_of(directory, optimizer), "run", {0});
    std::vector<double> losses;
    for (const nlohmann::json& line : metrics(directory / "run"))
      if (line.contains("loss")) losses.push_back(line["loss"]);
    REQUIRE(losses.size() == 6);
    CHECK(losses.back() < 0.95 * losses.front());
    const Verification found = Run::verify(directory / "run");
    CHECK(found.same);
    CHECK(found.replayed > 0);
  }
}

TEST_CASE("checkpoints of other moments, and damaged ones, are refused") {
  const tiny::Directory directory;
  const std::string checkpoint = trained(directory, recipe_of(directory, optimizers[4]), "run", {0});
  const auto complaint = [&](const std::vector<Setting>& settings) -> std::string {
    try {
      Run::resume(directory / "run", settings).trainer();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(complaint({{"optimizer.eight_bits", "false"}}).find("the run's checkpoints hold the moments of this kind") !=
        std::string::npos);
  CHECK(complaint({{"optimizer", R"({"kind": "lion"})"}}).find("the run's checkpoints hold the moments of this kind") !=
        std::string::npos);
  const std::string file = checkpoint + "/optimizer.safetensors";
  Store state = load_arrays(file);
  Array(state.at("second_scales.out.weight")).as<float>()[0] = -1;
  save_arrays(file, state);
  CHECK(complaint({}).find("'second_scales.out.weight' has an element that is negative or NaN") != std::string::npos);
}

TEST_CASE("recipes read the keys of each method, and its own defaults") {
  const tiny::Directory directory;
  const auto read = [&](const char* text) { return tiny::load(directory, {{"optimizer", text}}).trainer; };
  const OptimizerOptions muon = read(R"({"kind": "muon"})").optimizer;
  CHECK(muon.momentum == 0.95);
  CHECK(muon.nesterov);
  CHECK(muon.iterations == 5);
  const TrainerOptions lion = read(
      R"({"kind": "lion", "betas": [0.95, 0.98], "groups": [{"weights": "out.*", "kind": "rmsprop", "alpha": 0.9}]})");
  CHECK(lion.optimizer.beta1 == 0.95);
  CHECK(lion.optimizer.beta2 == 0.98);
  CHECK(lion.groups[0].options.alpha == 0.9);
  CHECK(lion.groups[0].options.beta2 == 0.999);
  CHECK(read(R"({"kind": "lion"})").optimizer.beta2 == 0.99);
  const auto complaint = [&](const char* text) -> std::string {
    try {
      read(text);
    } catch (const DefinitionError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(complaint(R"({"kind": "lion", "momentum": 0.9})").find("is not a known key") != std::string::npos);
  CHECK(complaint(R"({"kind": "adafactor", "beta2_decay": 0.8})").find("must be at most 0") != std::string::npos);
  CHECK(complaint(R"({"kind": "muno"})").find("did you mean 'muon'?") != std::string::npos);
  CHECK(complaint(R"({"kind": "muon", "iterations": 100})").find("1 to 99") != std::string::npos);
}

}  // namespace methods
