// Runs on documents: each text is a row.
#include <doctest/doctest.h>

#include <filesystem>

#include "source_root.hpp"
#include "tiny.hpp"
#include "xtape/decode.hpp"

using namespace xtape;

namespace {
const std::string documents_recipe = R"json({
  "xtape": 2,
  "name": "texts",
  "definition": ")json" + source_root() +
                                     R"json(/models/padded_gpt2.json",
  "hyper": {"vocab_size": {"from": "vocabulary"}, "n_positions": 24, "n_embd": 32, "n_layer": 1, "n_head": 2,
            "dropout_rate": 0, "activation": "relu", "epsilon": 1e-6},
  "data": {"kind": "documents", "text": "texts.txt", "separator": "line", "split": 0.8, "max_length": 20},
  "batch": {"size": 4, "bucket": 4},
  "optimizer": {"kind": "adam"},
  "schedule": {"kind": "constant", "rate": 1e-2},
  "epochs": 12
})json";

/// Ten texts of two kinds, and one that is too long for training.
std::string texts(const tiny::Directory& directory) {
  std::string text;
  for (int i = 0; i < 5; ++i) text += "a stitch in time\n\nno moss\n";
  return directory.write("texts.txt", "this is a text that is much too long to be trained on\n" + text);
}
}  // namespace

TEST_CASE("a run on padded texts learns them, including their ends") {
  const tiny::Directory directory;
  texts(directory);
  Run run = Run::create(Recipe::load(directory.write("recipe.json", documents_recipe)), directory / "run");
  CHECK(run.batches().epoch_batches() == 2);  // the first 8 of 11 texts, without the long one
  CHECK(run.end_token() == run.tokenizer().end());
  CHECK(run.end_tokens() == Tokens{run.end_token()});
  double first = 0, last = 0;
  Trainer::Callbacks callbacks;
  callbacks.evaluation = [&](const Evaluation& evaluation) {
    first = first == 0 ? evaluation.loss : first;
    last = evaluation.loss;
  };
  CHECK(run.train(callbacks));
  CHECK(last < 0.5 * first);
  CHECK(run.evaluate().loss == last);

  GenerateOptions options;
  options.tokens = 20;
  options.context = 23;
  options.end_tokens = run.end_tokens();
  options.sampling.temperature = 0;
  const Tokens prompt = run.prompt("no");
  CHECK(prompt.front() == run.tokenizer().start());
  const Tokens made = generate(run.model(), prompt, options);
  CHECK(run.tokenizer().decode(made) == " moss");
  CHECK(made.back() == run.end_token());
}

TEST_CASE("the recipe's settings of documents") {
  const tiny::Directory directory;
  const std::string path = directory.write("recipe.json", documents_recipe);
  CHECK(Recipe::load(path).data.separator == DocumentEnd::line);
  CHECK(Recipe::load(path).data.training == Recipe::Data::Files{{directory / "texts.txt"}});
  CHECK_THROWS_WITH_AS(Recipe::load(path, {{"data.separator", "page"}}),
                       doctest::Contains("'data.separator' must be \"line\" or \"blank_line\""), DefinitionError);
  texts(directory);
  const Recipe all = Recipe::load(path, {{"data.split", "1"}});
  CHECK_THROWS_WITH_AS(Run::create(all, directory / "run"), "the validation split has no rows", Error);
}

TEST_CASE(
    "a run with a folder's tokenizer ends generated texts at the folder's end tokens and at the end of its rows") {
  const tiny::Directory directory;
  texts(directory);
  std::filesystem::create_directory(directory / "folder");
  const std::string small = source_root() + "/tests/golden/data/gpt2_small/";
  for (const std::string name : {"vocab.json", "merges.txt"})
    directory.write("folder/" + name, read_text(small + name));
  directory.write("folder/config.json", R"({"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": [2, 5]})");
  directory.write("folder/generation_config.json", R"({"eos_token_id": [7, 9]})");
  std::string recipe = documents_recipe;
  recipe.replace(recipe.find("\"batch\""), 0,
                 "\"tokenizer\": {\"kind\": \"saved\", \"path\": \"" + (directory / "folder") + "\"}, ");
  const Run made = Run::create(Recipe::load(directory.write("recipe.json", recipe)), directory / "run");
  CHECK(made.end_token() == 2);
  CHECK(made.end_tokens() == Tokens{7, 9, 2});
  CHECK(Run::open(directory / "run").end_tokens() == Tokens{7, 9, 2});
}
