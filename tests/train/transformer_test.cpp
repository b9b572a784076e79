// Training models/transformer.json, small, on sentence pairs.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "run_files.hpp"
#include "source_root.hpp"
#include "tiny.hpp"

using namespace xtape;

namespace {
const std::string transformer_file = source_root() + "/models/transformer.json";
constexpr double smoothing = 0.1;

const std::string transformer_recipe = R"json({
  "xtape": 2,
  "name": "small_transformer",
  "definition": "transformer.json",
  "hyper": {
    "source_vocab_size": {"from": "source_vocabulary"},
    "target_vocab_size": {"from": "target_vocabulary"},
    "d_model": 16, "d_ff": 24, "heads": 2, "encoder_layers": 2, "decoder_layers": 2,
    "shared_embeddings": false, "tied_output": false,
    "dropout_rate": 0.2, "attention_dropout_rate": 0.1, "activation_dropout_rate": 0.1, "label_smoothing": 0.1
  },
  "data": {"kind": "pairs", "pairs": "training.tsv", "validation_pairs": "validation.tsv"},
  "tokenizer": {"kind": "words"},
  "batch": {"size": 16, "accumulate": 2},
  "optimizer": {"kind": "adam", "betas": [0.9, 0.98], "epsilon": 1e-9},
  "schedule": {"kind": "inverse_sqrt", "rate": 0.01, "warmup": 4},
  "epochs": 3,
  "clip": 1.0,
  "measure": ["bleu", "exact_match"],
  "search": {"max_length": 12},
  "keep": "all",
  "seed": 4
})json";

Recipe recipe_in(const tiny::Directory& directory, std::vector<Setting> settings = {}) {
  settings.push_back({"definition", transformer_file});
  directory.write("training.tsv", tiny::number_pairs(0, 120));
  directory.write("validation.tsv", tiny::number_pairs(500, 24));
  return Recipe::load(directory.write("recipe.json", transformer_recipe), settings);
}

Array row_of(const Tokens& tokens) {
  Array row(Dtype::int64, {1, static_cast<std::int64_t>(tokens.size())});
  std::copy(tokens.begin(), tokens.end(), row.as<std::int64_t>());
  return row;
}

/// The sums over targets, computed independently from the model's logits.
struct ByHand {
  double plain = 0;
  double smoothed = 0;
  std::int64_t right = 0;
  std::int64_t count = 0;

  void add(Model& model, const Tokens& source, const Tokens& target) {
    const Array read = row_of(source);
    const Array given = row_of(Tokens(target.begin(), target.end() - 1));
    const auto function =
        model.player("logits", Mode::eval, {{"b", 1}, {"s", read.shape()[1]}, {"t", given.shape()[1]}});
    function->player.play({{function->inputs.at("source"), read}, {function->inputs.at("tokens"), given}});
    const ArrayView logits = function->player.view(function->results[0].value);
    const std::int64_t classes = logits.shape()[2];
    for (std::int64_t place = 0; place < given.shape()[1]; ++place) {
      const float* row = logits.as<float>() + place * classes;
      double sum = 0;
      for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(row[c]));
      const double log_sum = std::log(sum);
      double all = 0;
      for (std::int64_t c = 0; c < classes; ++c) all += log_sum - row[c];
      const std::int32_t wanted = target[static_cast<std::size_t>(place) + 1];
      const double loss = log_sum - row[wanted];
      plain += loss;
      smoothed += (1 - smoothing) * loss + smoothing * all / static_cast<double>(classes);
      right += std::max_element(row, row + classes) == row + wanted ? 1 : 0;
      ++count;
    }
  }
};
}  // namespace

TEST_CASE("a Transformer with dropout, stopped in an epoch and continued, gives the same bits") {
  const tiny::Directory directory;
  const Recipe recipe = recipe_in(directory);
  Run whole = Run::create(recipe, directory / "whole");
  CHECK(whole.batches().epoch_batches() == 8);
  CHECK(whole.train());
  {
    Run run = Run::create(recipe, directory / "parts");
    Trainer::Callbacks callbacks;
    callbacks.stop = [&] { return run.trainer().step() == 6; };
    CHECK(!run.train(callbacks));
  }
  {
    Run run = Run::open(directory / "parts");
    CHECK(run.trainer().step() == 6);
    CHECK(run.trainer().epoch() == 1);
    CHECK(run.train());
  }
  for (const char* checkpoint : {"/checkpoints/00000008", "/checkpoints/00000012"})
    CHECK(same_bits(directory / "whole" + checkpoint, directory / "parts" + checkpoint));
  CHECK(metrics(directory / "whole") == metrics(directory / "parts"));
  CHECK(metrics(directory / "whole").size() == 12 + 3);
}

TEST_CASE("an evaluation equals the measures computed from the model's logits on the pairs") {
  const tiny::Directory directory;
  const Recipe recipe = recipe_in(directory, {{"epochs", "1"}});
  Run run = Run::create(recipe, directory / "run");
  CHECK(run.train());
  const Evaluation evaluation = run.evaluate();
  const Evaluation again = run.evaluate();
  CHECK(evaluation.loss == again.loss);
  CHECK(evaluation.perplexity == again.perplexity);
  CHECK(evaluation.accuracy == again.accuracy);
  CHECK(evaluation.bleu == again.bleu);
  CHECK(evaluation.exact_match == again.exact_match);
  const auto lines = evaluations(directory / "run");
  REQUIRE(lines.size() == 1);
  CHECK(lines[0]["perplexity"] == *evaluation.perplexity);  // the evaluation during training

  ByHand expected;
  const PairTexts pairs = read_pairs(directory / "validation.tsv");
  for (std::size_t i = 0; i < pairs.source.size(); ++i)
    expected.add(run.model(), framed(run.source_tokenizer(), pairs.source[i]),
                 framed(run.tokenizer(), pairs.target[i]));
  const auto count = static_cast<double>(expected.count);
  CHECK(evaluation.tokens == expected.count);
  CHECK(evaluation.loss == doctest::Approx(expected.smoothed / count).epsilon(1e-6));
  CHECK(std::log(*evaluation.perplexity) == doctest::Approx(expected.plain / count).epsilon(1e-6));
  CHECK(*evaluation.accuracy == static_cast<double>(expected.right) / count);
  CHECK(std::abs(evaluation.loss - std::log(*evaluation.perplexity)) > 1e-3);
}

TEST_CASE("a sentence that is too long for the model is an error before a run is created, however small its batch") {
  const tiny::Directory directory;
  std::string lines;
  for (int i = 0; i < 12; ++i) lines += "ein kleiner satz\n";
  const std::string longer = "und einer der so viel länger ist dass er allein in seinem stapel steht\n";
  directory.write("train", lines);
  directory.write("valid", lines + longer);
  std::vector<Setting> settings = {{"data", R"({"kind": "pairs", "folder": "", "source": "train", "target": "train",
                   "validation_source": "valid", "validation_target": "valid"})"},
                                   {"data.folder", directory / ""},
                                   {"batch", R"({"tokens": 24})"},
                                   {"hyper.positions", "learned"},
                                   {"epochs", "1"}};
  settings.push_back({"hyper.max_positions", "8"});
  CHECK_THROWS_WITH_AS(Run::create(recipe_in(directory, settings), directory / "run"),
                       doctest::Contains("more tokens than max_positions"), DefinitionError);
  CHECK(!std::filesystem::exists(directory / "run"));
  settings.back().value = "16";
  CHECK(Run::create(recipe_in(directory, settings), directory / "run").train());
}

TEST_CASE("micro-batches of a Transformer equal one batch of all their sentences, to rounding") {
  const tiny::Directory directory;
  const PairTexts texts = read_pairs(directory.write("pairs.tsv", tiny::number_pairs(0, 24)));
  const WordTokenizer source(texts.source);
  const WordTokenizer target(texts.target);
  const DataRows pairs = pairs_of(texts, source, target);
  const auto trained = [&](std::int64_t rows, std::int64_t accumulate) {
    ModelOptions options;
    options.dtype = Dtype::float64;
    options.hyper = {{"d_model", "16"},
                     {"d_ff", "24"},
                     {"heads", "2"},
                     {"encoder_layers", "2"},
                     {"decoder_layers", "2"},
                     {"shared_embeddings", "false"},
                     {"tied_output", "false"},
                     {"dropout_rate", "0"},
                     {"source_vocab_size", std::to_string(source.size())},
                     {"target_vocab_size", std::to_string(target.size())}};
    Model model = Model::load(transformer_file, options);
    RowBatchesOptions cutting;
    cutting.rows = rows;
    const RowBatches batches(pairs, pairs, cutting);
    TrainerOptions training;
    training.accumulate = accumulate;
    training.clip = 1;
    training.schedule = {ScheduleOptions::Kind::constant, 0.01};
    Trainer trainer(model, batches, training);
    std::vector<StepReport> reports;
    for (int i = 0; i < 3; ++i) reports.push_back(trainer.update());
    return std::pair(std::move(model), reports);
  };
  const auto [one, at_once] = trained(24, 1);
  const auto [three, in_parts] = trained(8, 3);
  for (std::size_t i = 0; i < at_once.size(); ++i) {
    CHECK(at_once[i].tokens == in_parts[i].tokens);
    CHECK(std::abs(at_once[i].loss - in_parts[i].loss) < 1e-11);
    CHECK(std::abs(at_once[i].norm - in_parts[i].norm) < 1e-10);
  }
  double most = 0;
  for (const Store::Entry& entry : one.weights())
    for (std::int64_t i = 0; i < entry.value.count(); ++i)
      most = std::max(most, std::abs(entry.value.as<double>()[i] - three.weights().at(entry.name).as<double>()[i]));
  CHECK(most < 1e-9);
}
