// Runs on files of JSON Lines, and on texts with words or spans to restore.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>

#include "chat_runs.hpp"

namespace chat_runs {

TEST_CASE("runs that restore masked words or missing spans are exact") {
  const InstalledTemplates installed;
  const tiny::Directory directory;
  std::string text;
  for (int i = 0; i < 40; ++i)
    text += i % 2 == 0 ? "the cat sat on the mat all day\n" : "a dog ran to the end of the road\n";
  directory.write("texts.txt", text);
  json recipe = chat_recipe();
  recipe["tokenizer"]["vocabulary_size"] = 30;
  recipe["definition"] = chat_models + "bert_words.json";
  recipe["hyper"] = {{"vocab_size", {{"from", "vocabulary"}}},
                     {"max_positions", 60},
                     {"d_model", 16},
                     {"layers", 1},
                     {"heads", 2},
                     {"dropout_rate", 0},
                     {"epsilon", 1e-6}};
  recipe["data"] = {{"kind", "documents"},
                    {"text", "texts.txt"},
                    {"separator", "line"},
                    {"corruption", {{"kind", "masked_lm"}, {"rate", 0.3}}}};
  const Run masked = check_exact(directory, recipe, "masked");
  CHECK(masked.tokenizer().token_of("[MASK]") == masked.tokenizer().size() - 1);
  recipe["definition"] = chat_models + "t5.json";
  recipe["hyper"] = {{"vocab_size", {{"from", "vocabulary"}}},
                     {"d_model", 16},
                     {"d_ff", 32},
                     {"heads", 2},
                     {"d_kv", 8},
                     {"encoder_layers", 1},
                     {"dropout_rate", 0}};
  recipe["data"] = {
      {"kind", "text"}, {"text", "texts.txt"}, {"block_size", 30}, {"corruption", {{"kind", "span_corruption"}}}};
  const Run spans = check_exact(directory, recipe, "spans");
  CHECK(spans.tokenizer().token_of("<extra_id_99>") == spans.tokenizer().size() - 1);
  recipe["data"]["corruption"]["mean_span"] = 0.5;
  check_complaint(directory, recipe, "'data.corruption.mean_span' must be at least 1");
  recipe["data"]["corruption"] = {{"kind", "span_corruption"}, {"rate", 0.5}, {"mean_span", 1}};
  recipe["data"]["block_size"] = 400;
  recipe["data"]["split"] = 0.5;
  check_complaint(directory, recipe, "the 100 sentinels");
  recipe["data"]["block_size"] = 30;
  recipe["tokenizer"] = {{"kind", "character"}};
  check_complaint(directory, recipe, "the tokenizer has no token '<extra_id_0>', which 'data.corruption' needs");
  recipe["data"] = {
      {"kind", "documents"}, {"text", "texts.txt"}, {"prompt_end", "="}, {"corruption", {{"kind", "masked_lm"}}}};
  check_complaint(directory, recipe, "'data.corruption' and 'prompt_end' exclude each other");
}

TEST_CASE("documents, pairs, tables, tags and texts are read from JSON Lines") {
  const InstalledTemplates installed;
  const tiny::Directory directory;
  const auto file = [&](const std::string& line) {
    std::string text;
    for (int i = 0; i < 20; ++i) text += line + "\n";
    return directory.write("rows.jsonl", text);
  };
  const auto split = [&](const json& data, const std::string& definition = "padded_gpt2") {
    json recipe = chat_recipe();
    recipe["definition"] = chat_models + definition + ".json";
    recipe["data"] = data;
    recipe["steps"] = 1;
    recipe["tokenizer"] = {{"kind", "character"}};
    recipe.erase("hyper");
    if (definition == "padded_gpt2" || definition == "gpt2")
      recipe["hyper"] = chat_recipe()["hyper"];
    else
      recipe["hyper"] = {{"vocab_size", {{"from", "vocabulary"}}}, {"classes", {{"from", "labels"}}}, {"width", 4}};
    std::filesystem::remove_all(directory / "run");
    return Run::create(Recipe::load(directory.write("recipe.json", recipe.dump())), directory / "run");
  };
  file(R"({"body": "to be", "n": 1})");
  const auto shape = [](const Run& run, const char* array) {
    return const_cast<Run&>(run).batches().blank().at(array).shape();
  };
  CHECK(shape(split({{"kind", "documents"}, {"text", "rows.jsonl"}, {"fields", {{"text", "body"}}}}), "tokens") ==
        Shape{4, 6});
  CHECK(split({{"kind", "text"}, {"text", "rows.jsonl"}, {"fields", {{"text", "body"}}}, {"block_size", 8}}, "gpt2")
            .tokenizer()
            .size() == 6);  // t, o, b, e, the space and the line end
  file(R"({"review": "to be", "stars": 5})");
  CHECK(split({{"kind", "table"},
               {"table", "rows.jsonl"},
               {"columns", {{"tokens", "text"}, {"label", "label"}}},
               {"fields", {{"tokens", "review"}, {"label", "stars"}}}},
              "text_classifier")
            .labels() == std::vector<std::string>{"5"});
  check_complaint(
      directory,
      [&] {
        json recipe = chat_recipe();
        recipe["data"] = {{"kind", "documents"}, {"text", "rows.jsonl"}, {"fields", {{"txt", "review"}}}};
        return recipe;
      }(),
      "'data.fields.txt' is not a known key; did you mean 'text'?");
  check_complaint(
      directory,
      [&] {
        json recipe = chat_recipe();
        recipe["data"] = {
            {"kind", "documents"}, {"text", "rows.jsonl"}, {"separator", "line"}, {"fields", {{"text", "review"}}}};
        return recipe;
      }(),
      "'data.fields' and 'separator' exclude each other");
}

}  // namespace chat_runs
