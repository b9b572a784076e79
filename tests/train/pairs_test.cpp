#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "run_files.hpp"
#include "tiny.hpp"
#include "xtape/safetensors.hpp"

using namespace xtape;
namespace fs = std::filesystem;

namespace {
/// Predicts the next word from the last one and the mean of the source's words: quickly trained, but a poor model.
const std::string definition = R"json({
  "xtape": 2,
  "name": "pairs",
  "hyper": {"source_vocab_size": null, "target_vocab_size": null, "width": 8},
  "blocks": {
    "table": {
      "hyper": {"rows": null},
      "weights": {"weight": {"shape": ["rows", "width"], "init": "normal", "std": 0.3}},
      "inputs": ["i"],
      "result": "take(weight, i, axis=0)"
    }
  },
  "model": {
    "modules": {
      "source_table": {"block": "table", "rows": "source_vocab_size"},
      "target_table": {"block": "table", "rows": "target_vocab_size"},
      "out": {"block": "table", "rows": "target_vocab_size"}
    },
    "functions": {
      "logits": {
        "inputs": {"source": "int [b, s]", "tokens": "int [b, t]"},
        "do": [
          "real = cast(source != 0, 'float')[..., none]",
          "read = sum(source_table(source) * real, axis=1, keepdims=true) / (sum(real, axis=1, keepdims=true) + 1e-9)",
          "x = dropout(tanh(target_table(tokens) + read), 0.1)"
        ],
        "result": "einsum('btd,vd->btv', x, out.weight)"
      },
      "loss": {
        "inputs": {"source": "int [b, s]", "tokens": "int [b, t]", "targets": "int [b, t]"},
        "do": ["total, count = cross_entropy(logits(source, tokens), targets, ignore=-1, label_smoothing=0.1)"],
        "result": "total, count"
      },
      "plain_loss": {
        "inputs": {"source": "int [b, s]", "tokens": "int [b, t]", "targets": "int [b, t]"},
        "do": ["total, count = cross_entropy(logits(source, tokens), targets, ignore=-1)"],
        "result": "total, count"
      },
      "accuracy": {
        "inputs": {"source": "int [b, s]", "tokens": "int [b, t]", "targets": "int [b, t]"},
        "do": [
          "right = sum(argmax(logits(source, tokens), axis=-1) == targets)",
          "count = sum(targets != -1)"
        ],
        "result": "right, count"
      }
    }
  }
})json";

const std::string pairs_text = R"json({
  "xtape": 2,
  "name": "pairs",
  "definition": "pairs.json",
  "hyper": {"source_vocab_size": {"from": "source_vocabulary"}, "target_vocab_size": {"from": "target_vocabulary"}},
  "data": {"kind": "pairs", "pairs": "training.tsv", "validation_pairs": "validation.tsv"},
  "tokenizer": {"kind": "words"},
  "batch": {"size": 16, "accumulate": 2},
  "optimizer": {"kind": "adam", "betas": [0.9, 0.98], "epsilon": 1e-9},
  "schedule": {"kind": "constant", "rate": 0.02},
  "epochs": 4,
  "keep": "all",
  "seed": 4
})json";

Recipe pairs_recipe(const tiny::Directory& directory, const std::vector<Setting>& settings = {}) {
  directory.write("pairs.json", definition);
  directory.write("training.tsv", tiny::number_pairs(0, 100));
  directory.write("validation.tsv", tiny::number_pairs(500, 20));
  return Recipe::load(directory.write("recipe.json", pairs_text), settings);
}
}  // namespace

TEST_CASE("epochs end with an evaluation and a checkpoint") {
  const tiny::Directory directory;
  Run run = Run::create(pairs_recipe(directory), directory / "run");
  CHECK(run.batches().epoch_batches() == 7);
  CHECK(run.train());
  // Updates of two batches, with 7 batches per epoch: an epoch ends with the update that has its last batch.
  CHECK(names(directory / "run") == std::vector<std::string>{"00000004", "00000007", "00000011", "00000014"});
  const auto lines = evaluations(directory / "run");
  REQUIRE(lines.size() == 4);
  for (const char* key : {"perplexity", "accuracy"}) CHECK(lines[0][key].is_number());
  CHECK(lines[3]["perplexity"] < lines[0]["perplexity"]);
  CHECK(std::log(lines[3]["perplexity"].get<double>()) < lines[3]["validation_loss"].get<double>());  // smoothed
  CHECK(run.trainer().epoch() == 4);
  CHECK(&run.tokenizer() != &run.source_tokenizer());
  CHECK(fs::exists(directory / "run/source_tokenizer.json"));
}

TEST_CASE("a text of pairs that is not UTF-8 is an error with its file and line") {
  const tiny::Directory directory;
  for (const std::string kind : {"words", "character"}) {
    CAPTURE(kind);
    const Recipe recipe = pairs_recipe(directory, {{"tokenizer.kind", kind}});
    directory.write("training.tsv", "eins\tone\n\nzwei\tt\xE9o\n");
    CHECK_THROWS_WITH_AS(Run::create(recipe, directory / "run"),
                         (directory / "training.tsv" + ", line 3: the text is not UTF-8 at byte 1").c_str(), Error);
    directory.write("training.tsv", "eins\tone\nzwei\ttwo\n");
    directory.write("validation.tsv", "\n\n\xFF\tone\n");
    CHECK_THROWS_WITH_AS(Run::create(recipe, directory / "run"),
                         doctest::Contains((directory / "validation.tsv" + ", line 3: the text is not UTF-8").c_str()),
                         Error);
  }
}

TEST_CASE("a run on pairs that is stopped in an epoch and continued gives the same bits") {
  const tiny::Directory directory;
  const Recipe recipe = pairs_recipe(directory, {{"checkpoint_every", "3"}});
  Run whole = Run::create(recipe, directory / "whole");
  CHECK(whole.train());
  {
    Run run = Run::create(recipe, directory / "parts");
    Trainer::Callbacks callbacks;
    callbacks.stop = [&] { return run.trainer().step() == 5; };
    CHECK(!run.train(callbacks));
  }
  Run run = Run::open(directory / "parts");
  CHECK(run.trainer().step() == 5);
  CHECK(run.train());
  CHECK(same_bits(directory / "whole/checkpoints/00000014", directory / "parts/checkpoints/00000014"));
  CHECK(evaluations(directory / "whole") == evaluations(directory / "parts"));
}

TEST_CASE("micro-batches equal one batch of all their sentences") {
  const tiny::Directory directory;
  // One batch of all pairs against two of its halves. Dropout depends on the position in the batch, so it must be off.
  std::string still = definition;
  still.replace(still.find("0.1)\""), 4, "0.0)");
  directory.write("pairs.json", still);
  directory.write("training.tsv", tiny::number_pairs(0, 100));
  directory.write("validation.tsv", tiny::number_pairs(500, 20));
  const std::string file = directory.write("recipe.json", pairs_text);
  const auto trained = [&](const std::string& size, const std::string& accumulate, const std::string& name) {
    Run run = Run::create(Recipe::load(file, {{"batch.size", size}, {"batch.accumulate", accumulate}, {"epochs", "3"}}),
                          directory / name);
    CHECK(run.train());
    CHECK(run.trainer().step() == 3);
    return load_arrays(directory / (name + "/checkpoints/00000003/weights.safetensors"));
  };
  const Store one = trained("100", "1", "one");
  const Store two = trained("50", "2", "two");
  for (const Store::Entry& entry : one)
    for (std::int64_t i = 0; i < entry.value.count(); ++i)
      CHECK(entry.value.as<float>()[i] == doctest::Approx(two.at(entry.name).as<float>()[i]).epsilon(2e-3));
}

TEST_CASE("patience ends a training that does not improve, also after a resume") {
  const tiny::Directory directory;
  Run run = Run::create(pairs_recipe(directory, {{"schedule.rate", "0"}, {"epochs", "50"}, {"patience", "3"}}),
                        directory / "run");
  CHECK(run.train());
  CHECK(evaluations(directory / "run").size() == 4);  // the first is the best, and three that are not better follow
  CHECK(run.trainer().best_step() == 4);
  Run again = Run::open(directory / "run");
  CHECK(again.train());
  CHECK(evaluations(directory / "run").size() == 4);
}

TEST_CASE("the best checkpoint is kept, and checkpoints are chosen") {
  const tiny::Directory directory;
  // The validation split contradicts the training split, so its loss soon rises.
  const Recipe recipe = pairs_recipe(directory, {{"keep", "1"}, {"schedule.rate", "0.1"}, {"epochs", "6"}});
  directory.write("validation.tsv", "um dois\tseven eight\nnove um\ttwo three\ntrês\tzero\n");
  Run run = Run::create(recipe, directory / "run");
  CHECK(run.train());
  const auto lines = evaluations(directory / "run");
  const auto better = [](const auto& a, const auto& b) { return a["perplexity"] < b["perplexity"]; };
  const auto best = std::min_element(lines.begin(), lines.end(), better);
  CHECK(run.trainer().best_step() == (*best)["step"]);
  REQUIRE(run.trainer().best_step() < run.trainer().step());  // so that the best checkpoint is not the last one
  CHECK(names(directory / "run").size() == 2);
  Run chosen = Run::open(directory / "run", {}, CheckpointChoice::parse("best"));
  CHECK(*chosen.evaluate().perplexity == (*best)["perplexity"].get<double>());
  CHECK(chosen.evaluate().step == (*best)["step"]);
  CHECK_THROWS_WITH_AS(Run::open(directory / "run", {}, CheckpointChoice::parse("average:3")),
                       doctest::Contains("fewer than the 3 to average"), FileError);
  for (const char* wrong : {"worst", "average", "average:", "average:0", "average:2x", ""})
    CHECK_THROWS_AS(CheckpointChoice::parse(wrong), Error);
}

TEST_CASE("checkpoints are written after epochs, or at their own interval, independent of evaluations") {
  const tiny::Directory directory;
  const std::vector<Setting> often = {{"evaluate_every", "2"}, {"checkpoint_every", "epoch"}};
  CHECK(Run::create(pairs_recipe(directory, often), directory / "epochs").train());
  CHECK(names(directory / "epochs") == std::vector<std::string>{"00000004", "00000007", "00000011", "00000014"});
  CHECK(evaluations(directory / "epochs").size() == 7);
  const std::vector<Setting> seldom = {{"checkpoint_every", "6"}, {"schedule.rate", "0"}};
  CHECK(Run::create(pairs_recipe(directory, seldom), directory / "steps").train());
  CHECK(names(directory / "steps") == std::vector<std::string>{"00000006", "00000012", "00000014"});
  CHECK_THROWS_WITH_AS(Run::open(directory / "steps", {}, CheckpointChoice::parse("best")),
                       doctest::Contains("does not have the best checkpoint: step 4 was the best"), FileError);
}

TEST_CASE("an evaluation at a step that already has a checkpoint is added to the checkpoint") {
  const tiny::Directory directory;
  {
    Run run = Run::create(pairs_recipe(directory), directory / "run");
    Trainer::Callbacks callbacks;
    callbacks.stop = [&] { return run.trainer().step() == 3; };
    CHECK(!run.train(callbacks));
  }
  CHECK_THROWS_WITH_AS(Run::open(directory / "run", {}, CheckpointChoice::parse("best")),
                       doctest::Contains("nothing has been evaluated yet"), FileError);
  for (int i = 0; i < 2; ++i) {
    CHECK(Run::open(directory / "run", {{"steps", "3"}}).train());
    CHECK(evaluations(directory / "run").size() == 1);
    CHECK(Run::open(directory / "run", {}, CheckpointChoice::parse("best")).evaluate().step == 3);
  }
}

TEST_CASE("a non-finite evaluation is never the best, but counts for patience") {
  const tiny::Directory directory;
  const Recipe recipe = pairs_recipe(directory, {{"patience", "2"}});
  std::string endless = definition;
  endless.insert(endless.rfind("\"total, count\"") + 1, "1e6 * ");  // of plain_loss, whose exp is then infinite
  directory.write("pairs.json", endless);
  Run run = Run::create(recipe, directory / "run");
  CHECK(run.train());
  CHECK(run.trainer().best_step() == -1);
  CHECK(run.trainer().step() == 7);
  Run again = Run::open(directory / "run");
  CHECK(again.train());
  CHECK(again.trainer().step() == 7);
  CHECK(evaluations(directory / "run").size() == 2);
}

TEST_CASE("a run that continues with other batches keeps its epoch") {
  const tiny::Directory directory;
  {
    Run run = Run::create(pairs_recipe(directory, {{"epochs", "2"}, {"checkpoint_every", "5"}}), directory / "run");
    Trainer::Callbacks callbacks;
    callbacks.stop = [&] { return run.trainer().step() == 5; };
    CHECK(!run.train(callbacks));
    CHECK(run.trainer().epoch() == 1);
  }
  Run run = Run::open(directory / "run", {{"batch.size", "50"}, {"batch.accumulate", "1"}});
  CHECK(run.batches().epoch_batches() == 2);
  CHECK(run.trainer().epoch() == 1);
  CHECK(run.train());
  CHECK(run.trainer().step() == 7);  // the second epoch starts again
}

TEST_CASE("an average is the mean of the last checkpoints") {
  const tiny::Directory directory;
  Run run = Run::create(pairs_recipe(directory), directory / "run");
  CHECK(run.train());
  Run averaged = Run::open(directory / "run", {}, CheckpointChoice::parse("average:3"));
  std::vector<Store> last;
  for (const char* step : {"00000007", "00000011", "00000014"})
    last.push_back(load_arrays(directory / (std::string("run/checkpoints/") + step + "/weights.safetensors")));
  for (const Store::Entry& entry : averaged.model().weights())
    for (std::int64_t i = 0; i < entry.value.count(); ++i) {
      double sum = 0;
      for (const Store& store : last) sum += static_cast<double>(store.at(entry.name).as<float>()[i]);
      CHECK(entry.value.as<float>()[i] == doctest::Approx(sum / 3).epsilon(1e-6));
    }
  // Training still continues from the last checkpoint.
  averaged = Run::open(directory / "run", {{"epochs", "5"}}, CheckpointChoice::parse("average:3"));
  averaged.evaluate();
  CHECK(averaged.train());
  CHECK(Run::create(pairs_recipe(directory, {{"epochs", "5"}}), directory / "whole").train());
  CHECK(same_bits(directory / "run/checkpoints/00000018", directory / "whole/checkpoints/00000018"));
}

TEST_CASE("a run on files: other pairs can be evaluated, and long pairs are left out of training") {
  const tiny::Directory directory;
  directory.write("a.de", "ein hund\nzwei\n\nein sehr sehr langer satz\nhund\n");
  directory.write("a.en", "a dog\ntwo\nnothing\na very very long sentence\ndog\n");
  const Recipe recipe =
      pairs_recipe(directory, {{"data", R"({"kind": "pairs", "folder": "", "source": "a.de", "target": "a.en",
                                            "validation_source": "a.de", "validation_target": "a.en", "max_length": 3})"},
                               {"data.folder", directory / ""},
                               {"epochs", "1"},
                               {"batch.size", "2"},
                               {"batch.accumulate", "1"},
                               {"tokenizer.joint", "true"},
                               {"measure", R"(["exact_match"])"}});
  Run run = Run::create(recipe, directory / "run");
  CHECK(run.batches().epoch_batches() == 2);  // three pairs are neither too long nor empty
  CHECK(run.train());
  CHECK(run.evaluate().tokens == 3 + 2 + 6 + 2);
  const Evaluation other = run.evaluate({"hund", ""}, {"dog", "two"});
  CHECK(other.tokens == 2);
  CHECK(other.step == 2);
  CHECK(other.questions == 2);  // an empty source counts, with an empty translation
  CHECK_THROWS_WITH_AS(run.evaluate({"hund", ""}, {"", "two"}), doctest::Contains("none of the 2 pairs of lines"),
                       Error);
  CHECK_THROWS_WITH_AS(run.evaluate({"hund", "\xff"}, {"dog", "two"}), doctest::Contains("line 2 of the source: "),
                       Error);
  CHECK_THROWS_AS(run.evaluate({"hund"}, {}), Error);
  CHECK(&run.tokenizer() == &run.source_tokenizer());
  directory.write("a.en", "a dog\n");
  CHECK_THROWS_WITH_AS(Run::create(recipe, directory / "other"), doctest::Contains("has 5 lines and"), Error);
  CHECK(!fs::exists(directory / "other"));
}
