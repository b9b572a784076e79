// Attention weights of runs and their tokens.
#include <doctest/doctest.h>

#include <cmath>

#include "source_root.hpp"
#include "tiny.hpp"

using namespace xtape;
using Strings = std::vector<std::string>;

namespace {
const std::string models = source_root() + "/models/";

/// An untrained run; the tests need no trained weights.
Run pairs_run(const tiny::Directory& directory, const std::string& definition) {
  directory.write("training.tsv", tiny::number_pairs(0, 144));
  const std::string recipe = directory.write("recipe.json", R"json({
    "xtape": 2, "name": "attending", "definition": "transformer.json",
    "hyper": {"source_vocab_size": {"from": "source_vocabulary"}, "target_vocab_size": {"from": "target_vocabulary"},
      "d_model": 16, "d_ff": 24, "heads": 4, "encoder_layers": 3, "decoder_layers": 2,
      "shared_embeddings": false, "tied_output": false},
    "data": {"kind": "pairs", "pairs": "training.tsv", "held_out": 24},
    "tokenizer": {"kind": "words"},
    "batch": {"size": 16}, "optimizer": {"kind": "adam"}, "schedule": {"kind": "constant", "rate": 0.01},
    "epochs": 1, "search": {"max_length": 6}, "seed": 4
  })json");
  return Run::create(Recipe::load(recipe, {{"definition", definition}}), directory / "run");
}

/// Checks that every row of weights is a probability distribution, and returns the number of rows.
std::int64_t checked_rows(const Attention& attention) {
  const Shape& shape = attention.weights.shape();
  REQUIRE(shape.size() == 4);
  CHECK(shape[2] == static_cast<std::int64_t>(attention.queries.tokens.size()));
  CHECK(shape[3] == static_cast<std::int64_t>(attention.keys.tokens.size()));
  const float* weight = attention.weights.as<float>();
  const std::int64_t rows = shape[0] * shape[1] * shape[2];
  for (std::int64_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (std::int64_t key = 0; key < shape[3]; ++key, ++weight) {
      CHECK(*weight >= 0);
      sum += *weight;
    }
    CHECK(sum == doctest::Approx(1).epsilon(1e-5));
  }
  return rows;
}

/// A definition whose function `attention` has another result.
std::string definition_giving(const tiny::Directory& directory, const std::string& result) {
  std::string text = read_text(models + "transformer.json");
  const std::string cross = "\"stack(decoder.all.cross_attention.sublayer.attend.weights)\"";
  text.replace(text.find(cross), cross.size(), "\"" + result + "\"");
  using std::filesystem::copy_options;
  const auto copying = copy_options::recursive | copy_options::overwrite_existing;
  for (const char* folder : {"blocks", "functions"})
    std::filesystem::copy(models + folder, directory / folder, copying);
  return directory.write("changed.json", text);
}
}  // namespace

TEST_CASE("attention weights have the tokens read and the tokens produced as labels") {
  const tiny::Directory directory;
  Run run = pairs_run(directory, models + "transformer.json");
  // Texts of equal length, so that their lengths do not identify them.
  const std::vector<Attention> all = run.attention("dois três um", "two three one two");
  REQUIRE(all.size() == 3);
  const Strings source = {"<s>", "dois", "três", "um", "</s>"};
  const Strings read = {"<s>", "two", "three", "one", "two"};
  const Strings produced = {"two", "three", "one", "two", "</s>"};
  CHECK(all[0].name == "cross");
  CHECK(all[0].queries.text == "target");
  CHECK(all[0].queries.tokens == produced);
  CHECK(all[0].keys.text == "source");
  CHECK(all[0].keys.tokens == source);
  CHECK(checked_rows(all[0]) == 2 * 4 * 5);
  CHECK(all[1].name == "encoder");
  CHECK(all[1].queries.tokens == source);
  CHECK(all[1].keys.tokens == source);
  CHECK(checked_rows(all[1]) == 3 * 4 * 5);
  CHECK(all[2].name == "decoder");
  CHECK(all[2].queries.tokens == read);
  CHECK(all[2].keys.tokens == read);
  CHECK(checked_rows(all[2]) == 2 * 4 * 5);
  const float* decoder = all[2].weights.as<float>();
  CHECK(decoder[0] == 1);  // the start token attends only to itself
  for (int hidden = 1; hidden < 5; ++hidden) CHECK(decoder[hidden] == 0);
}

TEST_CASE("without a target, the attention is that of the run's translation") {
  const tiny::Directory directory;
  Run run = pairs_run(directory, models + "transformer.json");
  const Translation translation = run.translate({"três e um"}, run.recipe().search)[0];
  REQUIRE(translation.candidates.size() == 1);
  const Tokens& tokens = translation.candidates[0].tokens;
  CHECK(tokens.size() <= 6);
  CHECK(run.tokenizer().decode(tokens) == translation.candidates[0].text);
  const Attention cross = run.attention("três e um")[0];
  CHECK(cross.queries.tokens == run.tokenizer().pieces(tokens));
  checked_rows(cross);
}

TEST_CASE("a run on text attends to the tokens before") {
  const tiny::Directory directory;
  std::string text;
  for (int i = 0; i < 20; ++i) text += "abc abd\n";
  directory.write("text.txt", text);
  const std::string recipe = directory.write("recipe.json", R"json({
    "xtape": 2, "name": "text", "definition": "gpt2.json",
    "hyper": {"vocab_size": {"from": "vocabulary"}, "n_positions": {"from": "columns"}, "n_embd": 8, "n_layer": 2, "n_head": 2},
    "data": {"kind": "text", "text": "text.txt", "block_size": 8},
    "batch": {"size": 2}, "optimizer": {"kind": "adam"}, "schedule": {"kind": "constant", "rate": 0.01}, "steps": 1
  })json");
  Run run = Run::create(Recipe::load(recipe, {{"definition", models + "gpt2.json"}}), directory / "run");
  const std::vector<Attention> all = run.attention("c a");
  REQUIRE(all.size() == 1);
  CHECK(all[0].queries.text == "text");
  CHECK(all[0].queries.tokens == Strings{"c", " ", "a"});
  CHECK(all[0].keys.tokens == Strings{"c", " ", "a"});
  CHECK(checked_rows(all[0]) == 2 * 2 * 3);
  CHECK_THROWS_WITH_AS(run.attention("c a", "b"), doctest::Contains("it has no target"), Error);
  CHECK_THROWS_WITH_AS(run.attention(""), doctest::Contains("the text is empty"), Error);
}

TEST_CASE("results that are not attention weights are errors") {
  const tiny::Directory directory;
  {
    Run run = pairs_run(directory, models + "transformer.json");
    CHECK_THROWS_WITH_AS(run.attention(""), doctest::Contains("the source is empty"), Error);
    CHECK_THROWS_WITH_AS(run.attention("um", "\xff"), doctest::Contains("not UTF-8"), Error);
  }
  std::filesystem::remove_all(directory / "run");
  CHECK_THROWS_WITH_AS(pairs_run(directory, definition_giving(directory, "applied")).attention("um"),
                       doctest::Contains("the result 'cross' of the function 'attention' is float32 (1, 3, "), Error);
  std::filesystem::remove_all(directory / "run");
  CHECK_THROWS_WITH_AS(pairs_run(directory, definition_giving(directory, "applied[none, :, none]")).attention("um"),
                       doctest::Contains("has queries or keys that do not match the tokens"), Error);
  Run run = Run::create(tiny::load(directory), directory / "tiny");
  CHECK_THROWS_WITH_AS(run.attention("1"), doctest::Contains("'tiny' has no function 'attention'"), Error);
}
