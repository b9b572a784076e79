// Recipes for sentence pairs, and the files of all kinds of data.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "recipe_complaint.hpp"
#include "train/recipe/recipe_parts.hpp"

using namespace xtape;
using tiny::complaint;

TEST_CASE("a recipe for sentence pairs") {
  const tiny::Directory directory;
  const Recipe recipe = tiny::load(
      directory,
      {{"data", R"({"kind": "pairs", "folder": "", "source": "a.gz", "target": "b", "validation_source": "c",
                     "validation_target": "d", "max_length": 40})"},
       {"data.folder", directory / "corpus"},
       {"tokenizer", R"({"kind": "sentencepiece", "model": "bpe", "vocabulary_size": 500, "lower_case": true})"},
       {"batch", R"({"tokens": 4096, "accumulate": 2, "bucket": 4})"},
       {"steps", "8000"},
       {"evaluate_every", "epoch"},
       {"patience", "10"},
       {"keep", "all"},
       {"measure", R"(["bleu"])"},
       {"search", R"({"beam_size": 5, "length_penalty": "power", "alpha": 0.8, "max_length": 90})"}});
  CHECK(recipe.data.has_pairs());
  CHECK(recipe.data.training[0][0] == directory / "corpus/a.gz");
  CHECK(recipe.data.max_length == 40);
  CHECK(!recipe.tokenizer.joint);
  CHECK(recipe.tokenizer.pieces.model == "bpe");
  CHECK(recipe.tokenizer.pieces.lower_case);
  CHECK(recipe.batch_tokens == 4096);
  CHECK(recipe.batch_size == 0);
  CHECK(recipe.bucket == 4);
  CHECK(recipe.fit.evaluate_epochs);
  CHECK(recipe.fit.evaluate_every == 0);
  CHECK(recipe.fit.patience == 10);
  CHECK(recipe.checkpoint_epochs);
  CHECK(recipe.keep == 0);
  CHECK(recipe.measure_bleu);
  CHECK(!recipe.measure_exact_match);
  CHECK(recipe.search.beam_size == 5);
  CHECK(recipe.search.max_length == 90);
}

TEST_CASE("the files of pairs: two or one for each split, in a folder or next to the recipe") {
  const tiny::Directory directory;
  using Files = Recipe::Data::Files;
  const auto data = [&](const std::vector<Setting>& settings) { return tiny::load(directory, settings).data; };
  const Recipe::Data two = data({{"data", R"({"kind": "pairs", "folder": "/corpus", "source": "a.gz", "target": "b",
    "validation_source": "c", "validation_target": "d", "test_source": "/e", "test_target": "-"})"}});
  CHECK(two.training == Files{{"/corpus/a.gz", "/corpus/b"}});
  CHECK(two.validation == Files{{"/corpus/c", "/corpus/d"}});
  CHECK(two.test == Files{{"/e", "/dev/stdin"}});
  const std::string here = tiny::fs::current_path().string();
  const Recipe::Data one = data({{"data", R"({"kind": "pairs", "pairs": "a.tsv", "test_pairs": "b.tsv"})"}});
  CHECK(one.training == Files{{here + "/a.tsv"}});
  CHECK(one.validation.empty());
  CHECK(one.split == 0.9);
  CHECK(one.test == Files{{here + "/b.tsv"}});
  CHECK(data({{"data.folder", "/some"}}).training == Files{{"/some/sums.txt"}});
  CHECK(data({{"data.folder", "some"}, {"data.text", "other.txt"}}).training == Files{{here + "/some/other.txt"}});
}

TEST_CASE("lists of files, next to the recipe, in a folder or set") {
  const tiny::Directory directory;
  using Files = Recipe::Data::Files;
  const auto data = [&](std::vector<Setting> settings) {
    settings.push_back({"measure", "null"});
    return tiny::load(directory, settings).data;
  };
  const std::string here = tiny::fs::current_path().string();
  CHECK(data({{"data.text", R"(["a", "/b", "-"])"}}).training == Files{{here + "/a"}, {"/b"}, {"/dev/stdin"}});
  CHECK(data({{"data.folder", "/some"}, {"data.text", R"(["a", "/b"])"}}).training == Files{{"/some/a"}, {"/b"}});
  CHECK(data({{"data", R"({"kind": "pairs", "folder": "/c", "source": ["a", "b"], "target": ["d", "e"],
                          "test_pairs": ["f", "g"]})"}})
            .training == Files{{"/c/a", "/c/d"}, {"/c/b", "/c/e"}});
  CHECK(data({{"data", R"({"kind": "table", "table": ["/a.csv", "/b.csv"], "columns": {"x": "label"}})"}}).training ==
        Files{{"/a.csv"}, {"/b.csv"}});
  const auto says = [&](const std::string& setting, const std::string& words) {
    CHECK_THROWS_WITH_AS(data({Setting::parse(setting)}), doctest::Contains(words.c_str()), DefinitionError);
  };
  says("data.text=[]", "must be a file, or a list with at least one, not []");
  says("data.text=[\"a\", 3]", "must be a list of strings, or one string, not [");
  says(R"(data={"kind": "pairs", "source": ["a", "b"], "target": "c"})",
       "'data.target' must have as many files as 'source', 2, not 1");
  says(R"(data={"kind": "images", "images": ["a", "b"]})",
       "must be one file: only texts, documents, chats, preferences, pairs, tables and tags may have several");
}

TEST_CASE("errors in recipes for pairs") {
  const auto says = [](const std::string& setting, const std::string& words) {
    const std::string found = complaint(setting);
    CHECK_MESSAGE(found.find(words) != std::string::npos, found);
  };
  says("data={\"kind\": \"pairs\"}",
       "needs the key 'pairs', a file of lines source<TAB>target, or 'source' and 'target'");
  says("data={\"kind\": \"pairs\", \"folder\": \".\", \"source\": \"a\"}", "needs the key 'target'");
  says(R"(data={"kind": "pairs", "pairs": "a", "source": "b", "target": "c"})",
       "'data.source' and 'pairs' exclude each other");
  says(R"(data={"kind": "pairs", "pairs": "a", "hold_out": 9})",
       "'data.hold_out' is not a known key; did you mean 'held_out'?");
  says(R"(data={"kind": "table", "table": "a"})", "needs the key 'columns'");
  says(R"(data={"kind": "table", "table": "a", "columns": {"a": "text"}, "delimiter": "tab"})",
       "must be one character");
  says("tokenizer.kind=word",
       "must be \"character\", \"words\", \"sentencepiece\", \"gpt2\" or \"saved\", not \"word\"");
  says(R"(tokenizer={"kind": "gpt2", "vocab": "v.json"})", "'tokenizer' needs the keys 'vocab' and 'merges'");
  says(R"(tokenizer={"kind": "gpt2", "vocab": "v.json", "merges": "m.txt"})",
       "needs data of kind 'text', not 'documents'");
  says("batch.tokens=100", "tokens");
  says(R"(data={"kind": "text", "text": "a"})", "'measure' needs pairs, or documents with a 'prompt_end'");
  says("measure=3", "must be a list of");
  says("measure=[\"blue\"]", "without \"blue\"");
  says("keep=0", "must be a whole number from 1 to 1000000000000 or \"all\", not 0");
  says("evaluate_every=\"epochs\"", "must be a whole number from 0 to 1000000000000 or \"epoch\", not \"epochs\"");
  says("steps=0", "'steps' must be above 0: a recipe has 'steps' or 'epochs'");
  says("hyper.width={\"from\": \"source_vocabulary\"}", "the data has no 'source_vocabulary'");
  const tiny::Directory directory;
  CHECK_THROWS_WITH_AS(tiny::load(directory, {{"patience", "3"}, {"evaluate_every", "0"}}),
                       doctest::Contains("'patience' needs evaluations"), DefinitionError);
}
