#include <doctest/doctest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "tiny.hpp"
#include "train/run/checkpoint.hpp"
#include "xtape/safetensors.hpp"

using namespace xtape;
namespace fs = std::filesystem;

namespace {
std::vector<nlohmann::json> metrics_of(const std::string& run) {
  std::vector<nlohmann::json> lines;
  std::istringstream text(read_text(run + "/metrics.jsonl"));
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

std::vector<double> losses_of(const std::string& run) {
  std::vector<double> losses;
  for (const auto& line : metrics_of(run))
    if (line.contains("loss")) losses.push_back(line["loss"]);
  REQUIRE(!losses.empty());
  return losses;
}

std::string last_checkpoint(const std::string& run) {
  return train::checkpoints(run + "/checkpoints").back();
}

Trainer::Callbacks stopping_at(std::int64_t step, Run& run) {
  Trainer::Callbacks callbacks;
  callbacks.stop = [step, &run] { return run.trainer().step() == step; };
  return callbacks;
}
}  // namespace

TEST_CASE("a run is a directory with everything in it") {
  const tiny::Directory directory;
  const std::string where = directory / "run";
  double loss = 0;
  {
    Run run = Run::create(tiny::load(directory), where);
    Trainer::Callbacks callbacks;
    callbacks.evaluation = [&](const Evaluation& evaluation) { loss = evaluation.loss; };
    CHECK(run.train(callbacks));
  }
  fs::remove(directory / "tiny.json");  // the run needs no file outside except the data
  fs::remove(directory / "recipe.json");
  const auto lines = metrics_of(where);
  CHECK(lines.size() == 12 + 3);
  CHECK(lines[0]["step"] == 1);
  for (const char* key : {"loss", "learning_rate", "gradient_norm", "tokens_per_s", "seconds"})
    CHECK(lines[0][key].is_number());
  CHECK(lines.back()["step"] == 12);
  CHECK(lines.back()["validation_loss"] == loss);
  CHECK(lines.back()["exact_match"].is_number());
  const auto found = train::checkpoints(where + "/checkpoints");
  REQUIRE(found.size() == 2);  // the recipe keeps two
  CHECK(fs::path(found[0]).filename() == "00000010");
  CHECK(fs::path(found[1]).filename() == "00000012");

  fs::rename(where, directory / "moved");
  Run opened = Run::open(directory / "moved");
  CHECK(opened.evaluate().loss == loss);
  CHECK(opened.evaluate().step == 12);
  CHECK(opened.tokenizer().size() == 4 + 12);  // the special tokens, and the characters of "3+4=7"
  CHECK(opened.columns() == 8);                // for a sum of two digits, rounded up
  CHECK(opened.end_token() == opened.tokenizer().end());
}

TEST_CASE("a run that was stopped and continued has the same bits as the uninterrupted run") {
  const tiny::Directory directory;
  const Recipe recipe = tiny::load(directory);
  Run whole = Run::create(recipe, directory / "whole");
  CHECK(whole.train());
  {
    Run run = Run::create(recipe, directory / "parts");
    CHECK(!run.train(stopping_at(3, run)));
  }
  {
    Run run = Run::open(directory / "parts");
    CHECK(!run.train(stopping_at(7, run)));
  }
  // As if killed after step 7: the metrics are ahead of the last checkpoint, and the last line is cut off.
  fs::remove_all(directory / "parts/checkpoints/00000007");
  std::ofstream(directory / "parts/metrics.jsonl", std::ios::app) << "{\"step\": 8, \"lo";
  Run run = Run::open(directory / "parts");
  CHECK(run.trainer().step() == 5);
  CHECK(run.train());
  CHECK(losses_of(directory / "parts") == losses_of(directory / "whole"));
  for (const char* file : {"/weights.safetensors", "/optimizer.safetensors"}) {
    const Store a = load_arrays(last_checkpoint(directory / "whole") + file);
    const Store b = load_arrays(last_checkpoint(directory / "parts") + file);
    for (const Store::Entry& entry : a)
      CHECK(std::memcmp(entry.value.data(), b.at(entry.name).data(), entry.value.bytes()) == 0);
  }
}

TEST_CASE("a run before its first checkpoint continues from the start") {
  const tiny::Directory directory;
  const Recipe recipe = tiny::load(directory);
  Run::create(recipe, directory / "run");
  Run run = Run::open(directory / "run");
  Run other = Run::create(recipe, directory / "other");
  CHECK(run.evaluate().loss == other.evaluate().loss);
  CHECK(run.trainer().step() == 0);
}

TEST_CASE("a non-finite loss ends a run and keeps the last good checkpoint") {
  const tiny::Directory directory;
  const Recipe recipe =
      tiny::load(directory, {Setting::parse("schedule={\"kind\": \"constant\", \"rate\": 1e36}"),
                             Setting::parse("clip=0"), Setting::parse("hyper.slope=100"),
                             Setting::parse("optimizer.weight_decay=0"), Setting::parse("checkpoint_every=1")});
  Run run = Run::create(recipe, directory / "run");
  CHECK_THROWS_WITH_AS(run.train(), doctest::Contains("of update 2 is not finite: "), TrainingError);
  const std::string checkpoint = last_checkpoint(directory / "run");
  CHECK(train::read_state(checkpoint).step == 1);
  CHECK(Run::open(directory / "run").trainer().step() == 1);
}

TEST_CASE("errors leave no directory") {
  const tiny::Directory directory;
  const Recipe recipe = tiny::load(directory, {Setting::parse("hyper.widht=3")});
  CHECK_THROWS_WITH_AS(Run::create(recipe, directory / "run"), doctest::Contains("width"), Error);
  CHECK(!fs::exists(directory / "run"));
  fs::create_directories(directory / "taken");
  CHECK_THROWS_WITH_AS(Run::create(tiny::load(directory), directory / "taken"), doctest::Contains("already exists"),
                       FileError);
  CHECK_THROWS_WITH_AS(Run::open(directory / "taken"), doctest::Contains("is not a run"), FileError);
}

TEST_CASE("a run on a text file: the vocabulary comes from the training split, and generation needs no text") {
  const tiny::Directory directory;
  std::string text;
  for (int i = 0; i < 40; ++i) text += "abcab ";
  directory.write("words.txt", text);
  const Recipe recipe = tiny::load(directory, {{"data", R"({"kind": "text", "text": "", "block_size": 8})"},
                                               {"data.text", directory / "words.txt"},
                                               {"measure", "[]"},
                                               {"steps", "40"}});
  Run run = Run::create(recipe, directory / "run");
  CHECK(run.tokenizer().size() == 4);
  CHECK(run.train());
  CHECK(run.evaluate().tokens == 23);  // the last tenth of 240 characters, without the first
  CHECK(run.evaluate().loss < 0.3);    // two letters determine the next one
  CHECK(!run.evaluate().exact_match);
  fs::remove(directory / "words.txt");
  Run opened = Run::open(directory / "run");
  CHECK(opened.columns() == 8);
  CHECK(opened.end_token() == -1);
  CHECK_THROWS_AS(opened.evaluate(), FileError);
}

namespace {
nlohmann::json recipe_of(const std::string& run) {
  return nlohmann::json::parse(read_text(run + "/recipe.json"));
}

/// Resumes a run with settings until a step, and returns the learning rates of all its updates.
std::vector<double> rates_after(const std::string& where, const std::vector<Setting>& settings, std::int64_t step,
                                const CheckpointChoice& checkpoint = {}) {
  Run run = Run::resume(where, settings, checkpoint);
  run.train(stopping_at(step, run));
  std::vector<double> rates;
  for (const auto& line : metrics_of(where))
    if (line.contains("loss")) rates.push_back(line["learning_rate"]);
  return rates;
}
}  // namespace

TEST_CASE("a resume writes the settings that change the recipe, and the former values") {
  const tiny::Directory directory;
  const std::string where = directory / "run";
  const auto json = [](const char* text) { return nlohmann::json::parse(text); };
  {
    const std::vector<Setting> constant = {{"schedule.kind", "constant"},
                                           {"schedule.final_rate", "null"},
                                           {"schedule.warmup", "0"},
                                           {"checkpoint_every", "1"},
                                           {"keep", "\"all\""}};
    Run run = Run::create(tiny::load(directory, constant), where);
    run.train(stopping_at(4, run));
  }
  const std::string before = read_text(where + "/recipe.json");
  { Run::resume(where, {{"schedule.rate", "0.25"}}).trainer(); }  // trains nothing
  CHECK(rates_after(where,
                    {{"seed", "4"}, {"schedule.rate", "5e-2"}, {"hyper", R"({"vocab_size": {"from": "vocabulary"}})"}},
                    5)
            .back() == 0.05);
  CHECK(read_text(where + "/recipe.json") == before);
  CHECK(rates_after(where, {{"schedule.rate", "0.25"}, {"clip", "null"}}, 6).back() == 0.25);
  CHECK(recipe_of(where)["schedule"]["rate"] == 0.25);
  CHECK(!recipe_of(where).contains("clip"));
  CHECK(recipe_of(where)["definition"] == "definition.json");
  CHECK(recipe_of(where)["changes"] == json(R"([{"until_step": 5, "was": {"schedule.rate": 0.05, "clip": 1.0}}])"));
  const std::string changed = read_text(where + "/recipe.json");
  CHECK(rates_after(where, {}, 7).back() == 0.25);  // goes on with the new settings
  CHECK(read_text(where + "/recipe.json") == changed);
  CHECK(rates_after(where, {{"schedule.rate", "0.5"}, {"clip", "1"}, {"watch", R"(["h"])"}, {"watch", "null"}}, 8)
            .back() == 0.5);
  CHECK(recipe_of(where)["changes"] == json(R"([{"until_step": 5, "was": {"schedule.rate": 0.05, "clip": 1.0}},
                                                {"until_step": 7, "was": {"schedule.rate": 0.25, "clip": null}}])"));
  rates_after(where, {{"keep", "9"}}, 9);  // keeps what it has read
  CHECK(recipe_of(where)["changes"] == json(R"([{"until_step": 5, "was": {"schedule.rate": 0.05, "clip": 1.0}},
                                                {"until_step": 7, "was": {"schedule.rate": 0.25, "clip": null}},
                                                {"until_step": 8, "was": {"keep": "all"}}])"));
  // Going back corrects the record: the updates 4 and 5 are made again, with the settings of now.
  CHECK(rates_after(where, {}, 4, CheckpointChoice::parse("3")) == std::vector<double>{0.05, 0.05, 0.05, 0.5});
  CHECK(recipe_of(where)["changes"] == json(R"([{"until_step": 3, "was": {"schedule.rate": 0.05, "keep": "all"}}])"));
  CHECK(rates_after(where, {{"schedule.rate", "0.05"}, {"keep", "\"all\""}}, 4, CheckpointChoice::parse("3")).back() ==
        0.05);
  CHECK(!recipe_of(where).contains("changes"));
  // A new run from the recipe of a run has no former values.
  rates_after(where, {{"clip", "2"}}, 5);
  CHECK(recipe_of(where).contains("changes"));
  Run::create(Recipe::load(where + "/recipe.json"), directory / "other");
  CHECK(!recipe_of(directory / "other").contains("changes"));
}

TEST_CASE("what gives weights and cursor their meaning cannot change in a run") {
  const tiny::Directory directory;
  const std::string where = directory / "run";
  {
    Run run = Run::create(tiny::load(directory), where);
    run.train(stopping_at(2, run));
  }
  const std::string before = read_text(where + "/recipe.json");
  for (const Setting& setting : std::vector<Setting>{{"hyper.slope", "2"},
                                                     {"hyper.width", "16"},
                                                     {"hyper.vocab_size", "20"},
                                                     {"hyper", "{}"},
                                                     {"definition", directory / "tiny.json"},
                                                     {"from", directory / "run"},
                                                     {"initialise", R"(["x"])"},
                                                     {"name", "other"},
                                                     {"seed", "5"},
                                                     {"tokenizer.kind", "words"},
                                                     {"tokenizer.unknown", "token"},
                                                     {"batch.bucket", "4"},
                                                     {"optimizer.kind", "sgd"},
                                                     {"data.separator", "blank_line"},
                                                     {"data.prompt_end", "null"},
                                                     {"data.longest_row", "9"},
                                                     {"privacy.noise_multiplier", "0"}}) {
    CAPTURE(setting.key);
    CHECK_THROWS_AS(Run::resume(where, {setting}), DefinitionError);
    CHECK_THROWS_AS(Run::open(where, {setting}), DefinitionError);  // an evaluation would be one of another model
  }
  CHECK_THROWS_WITH_AS(
      Run::resume(where, {{"clip", "2"}, {"hyper.slope", "2"}}),
      (where +
       "/recipe.json, --set hyper.slope: 'hyper.slope' has its default in this run and cannot become 2: the run's "
       "weights belong to the model of its definition.json. A new run can have another value; "
       "docs/reference/recipes/runs.md says which keys may change")
          .c_str(),
      DefinitionError);
  CHECK_THROWS_WITH_AS(
      Run::resume(where, {{"data", R"({"kind": "documents", "text": "sums.txt", "held_out": 20, "prompt_end": "="})"}}),
      doctest::Contains(R"(--set data: 'data.separator' is "line" in this run and cannot go back to its default)"),
      DefinitionError);
  // All that cannot change is in one error, also where other keys do not fit the new value.
  CHECK_THROWS_WITH_AS(
      Run::resume(where, {{"clip", "2"}, {"seed", "9"}, {"tokenizer.kind", "words"}}),
      (where + "/recipe.json:\n  --set seed: 'seed' is 4 in this run and cannot become 9: it determines the order of "
               "the data and all random numbers of the run;\n  --set tokenizer.kind: 'tokenizer.kind' has its "
               "default in this run and cannot become \"words\": the run's weights belong to the tokens of its "
               "tokenizer. A new run can have other values; docs/reference/recipes/runs.md says which keys may "
               "change")
          .c_str(),
      DefinitionError);
  CHECK_THROWS_WITH_AS(Run::resume(where, {{"optimizer.kind", "sgd"}}),
                       doctest::Contains("'optimizer.kind' is \"adamw\" in this run and cannot become \"sgd\""),
                       DefinitionError);
  CHECK_THROWS_WITH_AS(Run::resume(where, {{"changes", "[]"}}), doctest::Contains("the run writes it"),
                       DefinitionError);
  CHECK_THROWS_WITH_AS(Run::resume(where, {{"stps", "3"}}), doctest::Contains("did you mean 'steps'?"),
                       DefinitionError);
  CHECK(read_text(where + "/recipe.json") == before);
  // Hyper-parameters come from the definition alone.
  const double loss = Run::open(where).evaluate().loss;
  nlohmann::json edited = recipe_of(where);
  edited["hyper"]["slope"] = 3;
  directory.write("run/recipe.json", edited.dump());
  CHECK(Run::open(where).evaluate().loss == loss);
}

TEST_CASE("an epoch starts again if its batches are others, even if they are as many") {
  const tiny::Directory directory;
  const std::string where = directory / "run";
  {
    Run run = Run::create(tiny::load(directory, {{"batch.size", "50"}}), where);  // 80 rows: 2 batches
    run.train(stopping_at(3, run));
    CHECK(run.trainer().epoch() == 1);
  }
  const std::string kept = directory / "kept";
  fs::copy(where, kept, fs::copy_options::recursive);
  for (const auto& [path, size, epoch] : {std::tuple(where, "70", 1), {kept, "50", 2}}) {
    Run run = Run::resume(path, {{"batch.size", size}});
    run.train(stopping_at(4, run));
    CHECK(run.trainer().epoch() == epoch);
  }
}
