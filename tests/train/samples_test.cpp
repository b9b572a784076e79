// Samples that a training writes (samples.jsonl).
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "run_files.hpp"
#include "support/error_of.hpp"
#include "thread_ranks.hpp"
#include "tiny.hpp"

namespace sample_runs {

using namespace xtape;
using test::error_of;

namespace {
/// The tiny model with functions to sample, of the data and of noise.
Recipe sampling(const tiny::Directory& directory, std::vector<Setting> settings = {}) {
  nlohmann::json json = nlohmann::json::parse(tiny::definition);
  json["model"]["functions"]["drawn"] = {{"inputs", {{"noise", "float [n, width]"}}},
                                         {"result", "tanh(noise @ transpose(out.weight))"}};
  json["model"]["functions"]["first"] = {{"inputs", {{"tokens", "int [b, t]"}}},
                                         {"result", "here(tokens)[:, 0], tokens"}};
  json["model"]["functions"]["odd"] = {{"inputs", {{"numbers", "int [b]"}}}, {"result", "numbers"}};
  directory.write("sampled.json", json.dump());
  settings.insert(settings.begin(),
                  {{"definition", directory / "sampled.json"}, {"batch.shards", "2"}, {"ema", "0.9"}});
  return tiny::load(directory, settings);
}

const Setting texts = {"samples", R"({"every": 4, "prompts": ["1+2=", "9+9="], "tokens": 3, "temperature": 0.7})"};

std::vector<nlohmann::json> samples(const std::string& run) {
  std::vector<nlohmann::json> lines;
  std::istringstream text(read_text(run + "/samples.jsonl"));
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  REQUIRE(!lines.empty());
  return lines;
}
}  // namespace

TEST_CASE("samples continue prompts with the weights of evaluations at their update") {
  const tiny::Directory directory;
  Run run = Run::create(sampling(directory, {texts, {"keep", "all"}, {"checkpoint_every", "4"}}), directory / "run");
  CHECK(run.train());
  std::vector<nlohmann::json> expected;
  for (const std::int64_t step : {4, 8, 12}) {
    Run at = Run::open(directory / "run", {}, CheckpointChoice::parse("ema:" + std::to_string(step)));
    GenerateOptions options;
    options.tokens = 3;
    options.context = at.columns();
    options.end_tokens = at.end_tokens();
    options.sampling = {.temperature = 0.7, .seed = 4};
    const std::vector<std::string> prompts = {"1+2=", "9+9="};
    const std::vector<Tokens> made =
        generate_batch(at.model(), {at.prompt(prompts[0]), at.prompt(prompts[1])}, options);
    for (std::size_t i = 0; i < 2; ++i) {
      Tokens tokens = made[i];
      std::erase_if(tokens, [&](std::int32_t token) { return token == at.end_token(); });
      expected.push_back({{"step", step}, {"prompt", prompts[i]}, {"text", at.tokenizer().decode(tokens)}});
    }
  }
  CHECK(samples(directory / "run") == expected);
}

TEST_CASE("samples of functions are their results for the first rows and for noise, with an evaluation by default") {
  const tiny::Directory directory;
  const auto trained = [&](const std::string& function) {
    Run run = Run::create(
        sampling(directory, {{"samples", R"({"rows": 2, "function": ")" + function + "\"}"}, {"ema", "null"}}),
        directory / function);
    CHECK(run.train());
    return run;
  };
  Run first = trained("first");
  const std::vector<nlohmann::json> lines = samples(directory / "first");
  REQUIRE(lines.size() == 3);  // the evaluations
  CHECK(lines[0]["step"] == 5);
  CHECK(lines[2]["step"] == 12);
  BatchArrays batch = first.batches().blank();
  first.batches().validation(0, batch);
  const std::int64_t columns = batch.at("tokens").shape()[1];
  const Array table(first.model().weights().at("here.weight"));
  const nlohmann::json& results = lines[2]["results"];
  REQUIRE(results["first.0"].size() == 2);
  for (std::int64_t row = 0; row < 2; ++row) {
    const std::int64_t token = batch.at("tokens").as<std::int64_t>()[row * columns];
    CHECK(results["first.1"][row][0] == token);
    for (std::int64_t k = 0; k < 16; ++k)
      CHECK(results["first.0"][row][k].get<float>() == table.as<float>()[token * 16 + k]);
  }
  trained("drawn");
  const std::vector<nlohmann::json> drawn = samples(directory / "drawn");
  CHECK(drawn[0]["results"]["drawn"].size() == 2);
  CHECK(drawn[0]["results"]["drawn"][0] != drawn[0]["results"]["drawn"][1]);
  CHECK(drawn[0]["results"]["drawn"] != drawn[2]["results"]["drawn"]);
}

TEST_CASE("samples are the same after a resume and on two ranks, and leave the training as it is") {
  const tiny::Directory directory;
  for (const std::string every : {"4", "0"}) {
    const Setting setting = {"samples.every", every};
    const auto path = [&](const std::string& name) { return directory / (name + every); };
    CHECK(Run::create(sampling(directory, {texts, setting}), path("whole")).train());
    CHECK(Run::create(sampling(directory,
                               {texts, setting, {"steps", "9"}, {"schedule.steps", "12"}, {"checkpoint_every", "5"}}),
                      path("stopped"))
              .train());
    CHECK(Run::resume(path("stopped"), {{"steps", "12"}}, CheckpointChoice::parse("5")).train());
    const Recipe recipe = sampling(directory, {texts, setting});  // writes files, so not on each rank
    testing::run_ranks({0, 1}, [&](const std::shared_ptr<Communicator>& communicator) {
      CHECK(Run::create(recipe, path("ranks"), communicator).train());
    });
    for (const std::string other : {"stopped", "ranks"})
      CHECK(read_text(path(other) + "/samples.jsonl") == read_text(path("whole") + "/samples.jsonl"));
    CHECK(samples(path("whole")).size() == 6);
    CHECK(Run::create(sampling(directory), path("plain")).train());
    CHECK(same_bits(path("plain") + "/checkpoints/00000012", path("whole") + "/checkpoints/00000012"));
    CHECK(!std::filesystem::exists(path("plain") + "/samples.jsonl"));
  }
}

TEST_CASE("what cannot be sampled is refused before the training") {
  const tiny::Directory directory;
  const auto refused = [&](const std::string& section, const std::string& part) {
    const std::string error = error_of([&] {
      Run::create(sampling(directory, {{"samples", section}}), directory / "refused");
    });
    CAPTURE(error);
    CHECK(error.find(part) != std::string::npos);
    CHECK(!std::filesystem::exists(directory / "refused"));
  };
  refused("{}", "needs 'prompts' or 'function'");
  refused(R"({"prompts": ["1?"]})", "'samples.prompts', \"1?\"");
  refused(R"({"function": "drwan"})", "drawn");
  refused(R"({"function": "odd"})", "'odd' reads 'numbers', integers that the data does not have");
  refused(R"({"prompts": ["1"], "top_p": 2})", "above 0 and at most 1");
}

}  // namespace sample_runs
