// Trainings in stages, with batches, lengths and schedules of their own, and lists of schedules.
#include <doctest/doctest.h>

#include "recurrent.hpp"
#include "run_files.hpp"
#include "thread_ranks.hpp"
#include "tiny.hpp"

namespace stages {

using namespace xtape;

namespace {
const std::vector<Setting> of_text = {{"data", R"({"kind": "text", "text": "sums.txt", "block_size": 12})"},
                                      {"batch", R"({"size": 4, "shards": 2, "accumulate": 2})"},
                                      {"measure", "null"},
                                      {"steps", "null"},
                                      {"evaluate_every", "3"},
                                      {"keep", "\"all\""},
                                      {"schedule", "null"},
                                      {"stages", R"([
      {"steps": 3, "batch_size": 8, "block_size": 4, "schedule": {"kind": "linear", "rate": 0, "final_rate": 0.03}},
      {"steps": 2, "block_size": 6, "schedule": {"kind": "constant", "rate": 0.02}},
      {"steps": 4, "batch_size": 2, "schedule": [
        {"kind": "cosine", "rate": 0.02, "final_rate": 0.01, "steps": 2}, {"kind": "constant", "rate": 0.005}]}
    ])"}};

Recipe recipe_of(const tiny::Directory& directory, const std::vector<Setting>& more = {}) {
  const std::string data = R"({"kind": "text", "text": ")" + directory / "sums.txt" + R"(", "block_size": 12})";
  std::vector<Setting> all = of_text;
  all.push_back({"data", data});
  all.insert(all.end(), more.begin(), more.end());
  return tiny::load(directory, all);
}

/// Trains until an update, or to the end. Continues the run if there is one.
void train(const Recipe& recipe, const std::string& run, std::int64_t stop = 0,
           const std::shared_ptr<Communicator>& ranks = nullptr) {
  Run training =
      std::filesystem::exists(run + "/recipe.json") ? Run::resume(run, {}, {}, ranks) : Run::create(recipe, run, ranks);
  Trainer::Callbacks callbacks;
  callbacks.stop = [&] { return stop > 0 && training.trainer().step() == stop; };
  training.train(callbacks);
}

std::vector<double> numbers(const std::string& run, const char* key) {
  std::vector<double> found;
  for (const nlohmann::json& line : metrics(run))
    if (line.contains("loss")) found.push_back(line[key]);
  return found;
}

std::string complaint(const std::vector<Setting>& more) {
  const tiny::Directory directory;
  try {
    recipe_of(directory, more);
  } catch (const DefinitionError& error) {
    return error.what();
  }
  return "";
}
}  // namespace

TEST_CASE("each stage has its batches, lengths and rates") {
  const tiny::Directory directory;
  train(recipe_of(directory), directory / "run");
  CHECK(numbers(directory / "run", "tokens") == std::vector<double>{64, 64, 64, 48, 48, 48, 48, 48, 48});
  const std::vector<double> rates = numbers(directory / "run", "learning_rate");
  const std::vector<double> expected = {0.01, 0.02, 0.03, 0.02, 0.02, 0.015, 0.01, 0.005, 0.005};
  REQUIRE(rates.size() == expected.size());
  for (std::size_t i = 0; i < rates.size(); ++i) CHECK(rates[i] == doctest::Approx(expected[i]));
}

TEST_CASE("a training in stages continues with the same bits from every update, and its ledger replays") {
  const tiny::Directory directory;
  const Recipe recipe = recipe_of(directory);
  train(recipe, directory / "whole");
  for (std::int64_t stop = 1; stop < 9; ++stop) {
    const std::string run = directory / ("stopped" + std::to_string(stop));
    train(recipe, run, stop);
    train(recipe, run);
    CHECK(metrics(run) == metrics(directory / "whole"));
    CHECK(same_bits(run + "/checkpoints/" + names(run).back(),
                    directory / "whole/checkpoints/" + names(directory / "whole").back()));
    std::filesystem::remove_all(run);
  }
  VerifyOptions all;
  for (std::int64_t update = 1; update <= 9; ++update) all.updates.push_back(update);
  const Verification found = Run::verify(directory / "whole", all);
  CHECK(found.same);
  CHECK(found.replayed >= 9);
}

TEST_CASE("a training in stages has the same bits on two ranks") {
  const tiny::Directory directory;
  const Recipe recipe = recipe_of(directory);
  train(recipe, directory / "alone");
  testing::run_ranks({0, 1},
                     [&](const std::shared_ptr<Communicator>& ranks) { train(recipe, directory / "ranks", 4, ranks); });
  testing::run_ranks({0, 0},
                     [&](const std::shared_ptr<Communicator>& ranks) { train(recipe, directory / "ranks", 0, ranks); });
  CHECK(metrics(directory / "alone") == metrics(directory / "ranks"));
}

TEST_CASE("the last stage can be open; a run continues it, and keeps its stages") {
  const tiny::Directory directory;
  const char* const two = R"([{"steps": 3, "batch_size": 2}, {}])";
  const std::vector<Setting> open = {
      {"stages", two}, {"steps", "5"}, {"schedule", R"({"kind": "constant", "rate": 0.01})"}};
  train(recipe_of(directory, open), directory / "short");
  CHECK(numbers(directory / "short", "tokens") == std::vector<double>{48, 48, 48, 96, 96});
  CHECK(Run::resume(directory / "short", {{"steps", "8"}}).train());
  std::vector<Setting> longer = open;
  longer[1].value = "8";
  train(recipe_of(directory, longer), directory / "long");
  CHECK(numbers(directory / "short", "loss") == numbers(directory / "long", "loss"));
  CHECK_THROWS_WITH_AS(Run::resume(directory / "long", {{"stages", "null"}}),
                       doctest::Contains("they determine the run's position in the data"), DefinitionError);
  CHECK_THROWS_WITH_AS(Run::resume(directory / "long", {{"batch.accumulate", "1"}}).trainer(),
                       doctest::Contains("their 'steps' and 'batch.accumulate' cannot change"), FileError);
}

TEST_CASE("stages of rows have longer rows, and each begins a new order") {
  const tiny::Directory directory;
  const std::vector<Setting> rows = {{"measure", "null"},
                                     {"steps", "null"},
                                     {"stages", R"([{"steps": 4, "max_length": 6}, {"steps": 4, "batch_size": 3}])"},
                                     {"batch.size", "4"}};
  const Recipe recipe = tiny::load(directory, rows);
  train(recipe, directory / "run");
  const std::vector<double> tokens = numbers(directory / "run", "tokens");
  REQUIRE(tokens.size() == 8);
  for (std::size_t i = 0; i < 4; ++i) CHECK(tokens[i] <= 4 * 7);  // six tokens and the end
  train(recipe, directory / "stopped", 5);
  train(recipe, directory / "stopped");
  CHECK(metrics(directory / "run") == metrics(directory / "stopped"));
}

TEST_CASE("states are carried within a stage, and begin with zeros in the next") {
  const tiny::Directory directory;
  directory.write("recurrent.json", recurrent::definition);
  directory.write("sums.txt", tiny::sums_text());
  const std::string text = directory.write("recipe.json", R"({
    "xtape": 2, "name": "carried", "definition": "recurrent.json", "hyper": {"vocab_size": {"from": "vocabulary"}},
    "data": {"kind": "text", "text": "sums.txt", "block_size": 8, "windows": "consecutive"},
    "batch": {"size": 4}, "optimizer": {"kind": "sgd"}, "schedule": {"kind": "constant", "rate": 0.1},
    "stages": [{"steps": 3, "batch_size": 2, "block_size": 5}, {"steps": 4}]})");
  const Recipe recipe = Recipe::load(text);
  train(recipe, directory / "run");
  CHECK(numbers(directory / "run", "tokens") == std::vector<double>{10, 10, 10, 32, 32, 32, 32});
  for (const std::int64_t stop : {2, 3, 5}) {
    const std::string run = directory / ("stopped" + std::to_string(stop));
    train(recipe, run, stop);
    train(recipe, run);
    CHECK(metrics(run) == metrics(directory / "run"));
  }
}

TEST_CASE("a recipe with a list of schedules") {
  const tiny::Directory directory;
  const auto read = [&](const char* schedule) {
    return recipe_of(directory, {{"stages", "null"}, {"steps", "20"}, {"schedule", schedule}}).trainer.schedule;
  };
  const ScheduleOptions list = read(R"([
    {"kind": "linear", "rate": 0, "final_rate": 1, "steps": 4},
    {"kind": "cosine", "rate": 1, "final_rate": 0.1, "restart_every": 3, "steps": 6},
    {"kind": "exponential", "rate": 1, "final_rate": 0.01}])");
  REQUIRE(list.parts.size() == 3);
  CHECK(list.parts[2].steps == 10);  // what remains
  CHECK(rate_at(list, 4) == doctest::Approx(1));
  CHECK(rate_at(list, 8) == doctest::Approx(1));
  CHECK(rate_at(list, 15) == doctest::Approx(0.1));
  CHECK(rate_at(list, 20) == doctest::Approx(0.01));
  CHECK(read(R"({"kind": "cosine", "rate": 1, "restart_every": 3, "restart_factor": 2})").restart_factor == 2);
}

TEST_CASE("errors of stages and lists of schedules name the key") {
  const auto has = [](const std::string& text, const std::string& part) { return text.find(part) != text.npos; };
  const Setting constant = {"schedule", R"({"kind": "constant", "rate": 1})"};
  CHECK(has(complaint({constant}), "'schedule' has no effect: 'stages' have schedules"));
  CHECK(has(complaint({constant, {"stages", R"([{"steps": 3, "block_size": 13}])"}}),
            "'stages.0.block_size' must be at most 'data.block_size', 12"));
  CHECK(has(complaint({constant, {"stages", R"([{"steps": 3}, {}])"}}), "'stages.1.steps' must be above 0, unless"));
  CHECK(has(complaint({constant, {"stages", R"([{"batch_size": 3}, {"steps": 2}])"}}),
            "'stages.0.steps' must be above 0"));
  CHECK(has(complaint({constant, {"stages", R"([{"steps": 3, "batch_tokens": 4}])"}}), "needs 'batch.tokens'"));
  CHECK(has(complaint({constant, {"stages", R"([{"steps": 3, "max_length": 4}])"}}), "is for rows of texts"));
  CHECK(has(complaint({{"stages", R"([{"steps": 3}])"}}), "needs the key 'schedule'"));
  CHECK(has(complaint({{"stages", R"([{"steps": 3}, {"steps": 2, "schedule": {"kind": "constant", "rate": 1}}])"}}),
            "'stages' must all have a 'schedule', or none"));
  CHECK(has(complaint({constant, {"stages", R"([{"steps": 3, "batch": {"size": 4}}])"}}), "is not a known key"));
  CHECK(has(complaint({constant, {"stages", R"([{"steps": 3}])"}, {"evaluate_every", "\"epoch\""}}),
            "which a training in 'stages' does not have"));
  const Setting none = {"stages", "null"}, steps = {"steps", "9"};
  CHECK(has(complaint({none, steps, {"schedule", "[]"}}), "'schedule' must be a schedule, or a list of at least one"));
  CHECK(has(
      complaint({none, steps, {"schedule", R"([{"kind": "constant", "rate": 1}, {"kind": "constant", "rate": 2}])"}}),
      "each part of a list but the last needs a number of steps"));
  CHECK(has(complaint({none, steps, {"schedule", R"([{"kind": "constant", "rate": 1, "step": 4}])"}}),
            "'schedule.0.step'"));
  CHECK(has(complaint({none, steps, {"schedule", R"({"kind": "cosine", "rate": 1, "restart_every": 3, "steps": 4})"}}),
            "'schedule.steps' has no effect"));
  CHECK(has(complaint({none, steps, {"schedule", R"([{"kind": "noam", "rate": 1, "width": "d_model"}])"}}),
            "must be an integer in a list"));
}

}  // namespace stages
