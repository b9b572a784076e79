// Runs on words with labels, from files and a recipe.
#include <doctest/doctest.h>

#include <algorithm>

#include "predict.hpp"
#include "source_root.hpp"
#include "tiny.hpp"

using namespace xtape;

namespace {
/// "can" and "walk" are verbs after "we" and nouns after "the": the label needs the words around it.
std::string sentences(int count) {
  const char* words[] = {"can", "walk", "fish"};
  std::string text;
  for (int i = 0; i < count; ++i) {
    const std::string word = words[i % 3];
    text += i % 2 == 0 ? "we O\n" + word + " VERB\n" : "the O\n" + word + " NOUN\n";
    if (i % 5 == 0) text += "again O\n";
    text += "\n";
  }
  return text;
}

Recipe tagger(const tiny::Directory& directory, const std::vector<Setting>& settings = {}) {
  directory.write("tags.txt", sentences(60));
  directory.write("valid.txt", sentences(30));
  std::vector<Setting> all = {{"data.tags", directory / "tags.txt"},
                              {"data.validation_tags", directory / "valid.txt"},
                              {"hyper.width", "16"},
                              {"hyper.units", "16"},
                              {"hyper.dropout_rate", "0"},
                              {"batch.size", "8"},
                              {"epochs", "30"}};
  all.insert(all.end(), settings.begin(), settings.end());
  return Recipe::load(source_root() + "/models/recipes/tag_words.json", all);
}
}  // namespace

TEST_CASE("a tagger learns the labels of words from their context") {
  const tiny::Directory directory;
  Run run = Run::create(tagger(directory), directory / "run");
  CHECK(run.labels() == std::vector<std::string>{"NOUN", "O", "VERB"});
  CHECK(run.train());
  Run opened = Run::open(directory / "run");
  const Evaluation found = opened.evaluate();
  CHECK(found.tokens == 30 * 2 + 6);  // words, without special tokens and padding
  CHECK(*found.accuracy == 1);
  const train::RowPredictor predictor(opened);
  using Sentences = std::vector<std::vector<std::string>>;
  CHECK(predictor.tags({{"we", "can"}, {"the", "can", "again"}}) == Sentences{{"O", "VERB"}, {"O", "NOUN", "O"}});
  CHECK(predictor.tags({{"the", "fish"}}) == Sentences{{"O", "NOUN"}});
  CHECK(predictor.tags({}).empty());
  CHECK_THROWS_WITH_AS(predictor.tags({{"the fish"}}), doctest::Contains("makes 2 tokens of 1 words"), Error);
}

TEST_CASE("errors in tags name their file and line") {
  const tiny::Directory directory;
  const auto complaint = [&](const std::vector<Setting>& settings, const std::string& valid = "") -> std::string {
    const Recipe recipe = tagger(directory, settings);
    if (!valid.empty()) directory.write("valid.txt", valid);
    try {
      Run::create(recipe, directory / "run");
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing";
  };
  CHECK(complaint({}, "we O\n\nthe O\nwalk ADV\n") ==
        directory / "valid.txt" +
            ", sentence from line 3: column 'tags': word 2: 'ADV' is not one of the 3 labels of the training split");
  CHECK(complaint({}, "we O\nthe\n").find("valid.txt, line 2: a row must have 2 fields") != std::string::npos);
  CHECK(complaint({{"tokenizer", R"({"kind": "character"})"}})
            .find("tags.txt, sentence from line 1: the tokenizer makes 12 tokens of 3 words") != std::string::npos);
  CHECK(!std::filesystem::exists(directory / "run"));
}

TEST_CASE("the columns of tags may be any fields") {
  const tiny::Directory directory;
  const auto columns = [&](const std::string& text) {
    return tagger(directory, {{"data.columns", text}}).data.columns;
  };
  const std::vector<Column> four = columns(R"({"tokens": "text", "pos": "skip", "chunk": "skip", "tags": "tags"})");
  CHECK(four.size() == 4);
  CHECK(four[3].kind == Column::Kind::tags);
  CHECK_THROWS_WITH_AS(columns(R"({"tokens": "text"})"), doctest::Contains("must have one column \"tags\""),
                       DefinitionError);
  CHECK_THROWS_WITH_AS(columns(R"({"tokens": "text", "tags": "label"})"),
                       doctest::Contains(R"(must be "text", "tags" or "skip", not "label")"), DefinitionError);
}
