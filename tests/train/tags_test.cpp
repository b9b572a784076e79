// Runs on words with labels, from files and a recipe.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "source_root.hpp"
#include "tiny.hpp"
#include "train/predict/predict.hpp"

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

TEST_CASE("a conditional random field scores each label by the one before") {
  const tiny::Directory directory;
  const Recipe recipe = tagger(directory, {{"definition", source_root() + "/models/tagger_crf.json"}});
  Run run = Run::create(recipe, directory / "run");
  CHECK(run.train());
  Run opened = Run::open(directory / "run");
  CHECK(*opened.evaluate().accuracy == 1);
  using Sentences = std::vector<std::vector<std::string>>;
  const train::RowPredictor predictor(opened);
  CHECK(predictor.tags({{"we", "can"}, {"the", "can", "again"}}) == Sentences{{"O", "VERB"}, {"O", "NOUN", "O"}});

  // With scores of pairs that contradict the emissions: the loss and the best of all 3^2 labellings of a sentence.
  Model& model = opened.model();
  const xt::xarray<float> pairs = {{0.5F, -1, 2}, {3, 0.25F, -2}, {1, -0.5F, 0}};
  const xt::xarray<float> first = {1, -1, 0}, last = {0, 2, -1};
  const auto set = [&](const char* name, const xt::xarray<float>& values) {
    const_cast<Array&>(model.weights().at(name)).assign(values);
  };
  set("transitions", pairs);
  set("start_transitions", first);
  set("end_transitions", last);
  const Tokens tokens = source_of(opened.tokenizer(), "we can");
  const Array row = token_array({tokens}, 0);
  const std::size_t before = tokens.size() - 2 - (tokens.back() == opened.tokenizer().end() ? 1 : 0);
  const Array logits = model.play("logits", {{"tokens", row}})[0].value;
  const auto score = [&](int a, int b) {
    return logits(0, before, a) + logits(0, before + 1, b) + pairs(a, b) + first(a) + last(b);
  };
  double total = 0;
  std::pair<int, int> best{0, 0};
  for (int a = 0; a < 3; ++a)
    for (int b = 0; b < 3; ++b) {
      total += std::exp(score(a, b));
      if (score(a, b) > score(best.first, best.second)) best = {a, b};
    }
  const std::vector<std::string>& labels = opened.labels();
  CHECK(predictor.tags({{"we", "can"}}) ==
        Sentences{{labels[static_cast<std::size_t>(best.first)], labels[static_cast<std::size_t>(best.second)]}});
  Array tags(Dtype::int64, row.shape());
  std::fill_n(tags.as<std::int64_t>(), row.count(), -1);
  tags.as<std::int64_t>()[before] = 1;
  tags.as<std::int64_t>()[before + 1] = 2;
  const auto loss = model.play("loss", {{"tokens", row}, {"tags", tags}});
  CHECK(loss[0].value.to<float>()() == doctest::Approx(std::log(total) - score(1, 2)).epsilon(1e-5));
  CHECK(*loss[1].value.as<std::int64_t>() == 2);
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
