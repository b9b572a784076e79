#include <doctest/doctest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "checkpoint.hpp"
#include "tiny.hpp"
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
