// Runs that start from a model folder and are exported to one.
#include "xtape/hugging_face.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "source_root.hpp"
#include "tiny.hpp"
#include "train/run/checkpoint.hpp"
#include "xtape/safetensors.hpp"

using namespace xtape;

namespace {
const std::string gpt2 = source_root() + "/models/gpt2.json";
const std::string published = source_root() + "/tests/golden/data/hugging_face/tiny";
const std::string proverb = "a stitch in time saves nine, and a rolling stone gathers no moss. ";

const std::string recipe_text = R"json({
  "xtape": 2,
  "name": "further",
  "definition": ")json" + gpt2 + R"json(",
  "data": {"kind": "text", "text": "words.txt", "block_size": 16},
  "tokenizer": {"kind": "character"},
  "batch": {"size": 4},
  "optimizer": {"kind": "adamw"},
  "schedule": {"kind": "constant", "rate": 1e-2},
  "steps": 20,
  "checkpoint_every": 10
})json";

Recipe recipe_for(const tiny::Directory& directory, std::vector<Setting> settings = {},
                  const std::string& folder = published) {
  std::string text;
  for (int i = 0; i < 20; ++i) text += proverb;
  directory.write("words.txt", text);
  settings.push_back({"from", folder});
  return Recipe::load(directory.write("recipe.json", recipe_text), settings);
}

bool equal_weights(const Model& a, const Model& b) {
  for (const Store::Entry& entry : a.weights()) {
    const Array* other = b.weights().find(entry.name);
    if (other == nullptr || other->shape() != entry.value.shape() ||
        std::memcmp(other->data(), entry.value.data(), entry.value.bytes()) != 0)
      return false;
  }
  return a.weights().size() == b.weights().size() && a.weights().size() > 0;
}

Model opened(const std::string& folder) {
  return open_hugging_face(folder, {}, gpt2);
}
}  // namespace

TEST_CASE("a run from a folder starts with its weights, trains them, and exports a folder of the same form") {
  const tiny::Directory directory;
  const std::string where = directory / "run";
  {
    Run run = Run::create(recipe_for(directory), where);
    CHECK(equal_weights(run.model(), opened(published)));
    run.save_hugging_face(directory / "untouched");
    const double before = run.evaluate().loss;
    CHECK(run.train());
    CHECK(run.evaluate().loss < before - 1);
    run.save_hugging_face(directory / "trained");
  }
  const auto bytes = [](const std::string& folder, const char* file) { return read_text(folder + "/" + file); };
  CHECK(equal_weights(opened(directory / "untouched"), opened(published)));
  CHECK(bytes(directory / "untouched", "generation_config.json") == bytes(published, "generation_config.json"));
  // Config keys that correspond to no hyper-parameter are unchanged; the others have the same values.
  const auto config = nlohmann::json::parse(bytes(directory / "trained", "config.json"));
  auto original = nlohmann::json::parse(bytes(published, "config.json"));
  original["n_inner"] = 64;
  CHECK(config == original);
  Run run = Run::open(where);
  CHECK(equal_weights(opened(directory / "trained"), run.model()));
  CHECK(!equal_weights(run.model(), opened(published)));
}

TEST_CASE("a run from a folder continues with the same bits, and no longer needs the folder") {
  const tiny::Directory directory;
  std::filesystem::copy(published, directory / "folder");
  const Recipe recipe = recipe_for(directory, {}, directory / "folder");
  Run whole = Run::create(recipe, directory / "whole");
  CHECK(whole.train());
  {
    Run part = Run::create(recipe, directory / "part");
    Trainer::Callbacks callbacks;
    callbacks.stop = [&] { return part.trainer().step() == 10; };
    CHECK(!part.train(callbacks));
  }
  std::filesystem::remove_all(directory / "folder");
  Run part = Run::open(directory / "part");
  CHECK(part.train());
  CHECK(equal_weights(part.model(), whole.model()));
}

TEST_CASE("hyper-parameters of a recipe override the folder's") {
  const tiny::Directory directory;
  Run run = Run::create(recipe_for(directory, {{"hyper.dropout_rate", "0.25"}}), directory / "run");
  for (const char* name : {"dropout_rate", "embd_dropout_rate", "attn_dropout_rate", "resid_dropout_rate"})
    CHECK(run.model().hyper().number(name) == 0.25);
}

TEST_CASE("a run from a folder: the config determines the definition, and the tokenizer can be a saved one") {
  const tiny::Directory directory;
  recipe_for(directory);
  save_tokenizer(CharacterTokenizer(proverb), directory / "letters.json");
  nlohmann::json json = nlohmann::json::parse(recipe_text);
  json.erase("definition");
  json["tokenizer"] = {{"kind", "saved"}, {"path", "letters.json"}};
  const std::string path = directory.write("recipe.json", json.dump());
  CHECK_THROWS_WITH_AS(Recipe::load(path), doctest::Contains("needs the key 'definition' or 'from'"), DefinitionError);
  setenv("XTAPE_MODELS", (source_root() + "/models").c_str(), 1);
  Run run = Run::create(Recipe::load(path, {{"from", published}}), directory / "run");
  unsetenv("XTAPE_MODELS");
  CHECK(run.model().name() == "gpt2");
  CHECK(run.tokenizer().encode(proverb) == CharacterTokenizer(proverb).encode(proverb));
}

TEST_CASE("a run uses the folder's tokenizer unless its recipe names another") {
  const tiny::Directory directory;
  recipe_for(directory);
  nlohmann::json json = nlohmann::json::parse(recipe_text);
  json.erase("tokenizer");
  const Recipe recipe = Recipe::load(directory.write("recipe.json", json.dump()), {{"from", published}});
  CHECK(recipe.tokenizer.kind == "saved");
  CHECK(recipe.tokenizer.path == published);
}

TEST_CASE("a tokenizer with more tokens than the model is an error and leaves no run") {
  const tiny::Directory directory;
  std::string many;
  for (char letter = '!'; letter < 127; ++letter) many += letter;
  const Recipe recipe = recipe_for(directory);
  directory.write("words.txt", many + "äöüß" + proverb + many);
  CHECK_THROWS_WITH_AS(Run::create(recipe, directory / "run"),
                       doctest::Contains(("tokens, but the model of " + published + " has only 97").c_str()), Error);
  CHECK(!tiny::fs::exists(directory / "run"));
}

TEST_CASE("a run that did not start from a folder can also be exported as one") {
  const tiny::Directory directory;
  recipe_for(directory);
  nlohmann::json json = nlohmann::json::parse(recipe_text);
  json["hyper"] = {{"vocab_size", {{"from", "vocabulary"}}},
                   {"n_positions", 16},
                   {"n_embd", 8},
                   {"n_layer", 1},
                   {"n_head", 2},
                   {"activation", "relu"}};
  const Run run = Run::create(Recipe::load(directory.write("recipe.json", json.dump())), directory / "run");
  run.save_hugging_face(directory / "folder");
  const Model model = opened(directory / "folder");
  CHECK(model.hyper().text("activation") == "relu");
  Run again = Run::open(directory / "run");
  CHECK(equal_weights(model, again.model()));
}
