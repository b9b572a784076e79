// Runs on tables of texts, labels and numbers, from files and a recipe.
#include <doctest/doctest.h>

#include <cmath>

#include "base/messages/wording.hpp"
#include "source_root.hpp"
#include "tiny.hpp"

using namespace xtape;

namespace {
const std::string classifier_recipe = R"json({
  "xtape": 2,
  "name": "languages",
  "definition": ")json" + source_root() +
                                      R"json(/models/text_classifier.json",
  "hyper": {"vocab_size": {"from": "vocabulary"}, "classes": {"from": "labels"}, "width": 16, "dropout_rate": 0},
  "data": {"kind": "table", "table": "texts.tsv", "columns": {"label": "label", "note": "skip", "tokens": "text"},
           "validation_table": "valid.tsv", "test_table": "test.tsv"},
  "tokenizer": {"kind": "words"},
  "batch": {"size": 8},
  "optimizer": {"kind": "adam"},
  "schedule": {"kind": "constant", "rate": 0.02},
  "epochs": 10,
  "seed": 1
})json";

/// Sentences of words of one language.
std::string labelled(int count) {
  const char* words[3][4] = {{"ein", "hund", "und", "haus"}, {"a", "dog", "and", "house"}, {"um", "cão", "e", "casa"}};
  const char* names[] = {"German", "English", "Portuguese"};
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += std::string(names[i % 3]) + "\tnumber " + std::to_string(i) + "\t";
    for (int word = 0; word <= i % 5; ++word)
      text += std::string(word > 0 ? " " : "") + words[i % 3][(i / 3 + word) % 4];
    text += "\n";
  }
  return text;
}

Recipe classifier(const tiny::Directory& directory, const std::vector<Setting>& settings = {}) {
  directory.write("texts.tsv", labelled(60));
  directory.write("valid.tsv", labelled(21));
  directory.write("test.tsv", labelled(9));
  return Recipe::load(directory.write("recipe.json", classifier_recipe), settings);
}
}  // namespace

TEST_CASE("a text classifier learns labels from files and a recipe") {
  const tiny::Directory directory;
  Run run = Run::create(classifier(directory), directory / "run");
  CHECK(run.labels() == std::vector<std::string>{"English", "German", "Portuguese"});
  CHECK(run.model().hyper().integer("classes") == 3);
  CHECK(run.batches().epoch_batches() == 8);
  CHECK(run.train());
  Run opened = Run::open(directory / "run");
  CHECK(opened.labels() == run.labels());
  const Evaluation found = opened.evaluate();
  CHECK(found.tokens == 21);
  CHECK(*found.accuracy == 1);
  CHECK(!found.perplexity);
  CHECK(opened.evaluate(true).tokens == 9);
  // Class i is label i.
  const Store logits = opened.model().play("logits", {{"tokens", token_array({framed(opened.tokenizer(), "um cão")})}});
  const float* scores = logits[0].value.as<float>();
  CHECK(std::max_element(scores, scores + 3) - scores == 2);
}

TEST_CASE("errors in a table name its file and line") {
  const tiny::Directory directory;
  const auto complaint = [&](const std::vector<Setting>& settings, const std::string& valid = "") -> std::string {
    const Recipe recipe = classifier(directory, settings);
    if (!valid.empty()) directory.write("valid.tsv", valid);
    try {
      Run::create(recipe, directory / "run");
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing";
  };
  CHECK(complaint({}, "German\tx\tein\nDutch\tx\teen\n") ==
        directory / "valid.tsv" + ", line 2: column 'label': 'Dutch' is not one of the 3 labels of the training split");
  CHECK(complaint({}, "German\tein\n").find("valid.tsv, line 1: a row must have 3 fields separated by tabs") !=
        std::string::npos);
  CHECK(complaint({}, "German\tx\tein\n\tx\tein\n") ==
        directory / "valid.tsv" + ", line 2: column 'label': the label is empty");
  CHECK(complaint({{"data.header", "true"}}, "German\tx\tein\nDutch\tx\teen\n")
            .find("valid.tsv, line 2: column 'label': 'Dutch'") != std::string::npos);
  CHECK(complaint({{"data.columns", R"({"label": "label", "x": "number", "tokens": "text"})"}}) ==
        directory / "texts.tsv" +
            ", line 1: column 'x': 'number 0' is not a finite number: write a decimal number such as 12, -0.5 or 1e-3");
  CHECK(complaint({{"data.columns", R"({"label": "label", "note": "skip", "words": "text"})"}})
            .find("takes an input 'tokens', but the arrays given are label, words") != std::string::npos);
  CHECK(!std::filesystem::exists(directory / "run"));
}

TEST_CASE("labels have no spaces around them, blank lines are no rows, and errors name the line of a row") {
  const tiny::Directory directory;
  const Recipe recipe = classifier(directory, {{"data.table", directory / "spaced.csv"}, {"data.delimiter", ","}});
  std::string text = "\xEF\xBB\xBF\n";
  for (const char* each :
       {"German,\"n\n\",ein", " German,n,hund", "English\t,n,\"a\n\"\"dog\"\"\"", "\"English\",n,the"})
    text += std::string(each) + "\n\n";
  const auto made = [&](const std::string& valid) -> std::string {
    directory.write("spaced.csv", text);
    directory.write("valid.tsv", valid);
    directory.write("test.tsv", "German,x,ein\n");
    std::filesystem::remove_all(directory / "run");
    try {
      return joined(Run::create(recipe, directory / "run").labels());
    } catch (const Error& error) {
      return error.what();
    }
  };
  CHECK(made("German ,x,ein\n\n") == "English, German");
  CHECK(made("\nGerman,x,\"a\nb\"\n\nDutch,x,c\n") ==
        directory / "valid.tsv" + ", line 5: column 'label': 'Dutch' is not one of the 2 labels of the training split");
  CHECK(made("\"Ger\nman\",x,a\n") ==
        directory / "valid.tsv" + ", line 1: column 'label': the label 'Ger\\nman' has a line break");
  text += "German,n,\"b\n\xE9\"\n";
  CHECK(made("German,x,ein\n") == directory / "spaced.csv" + ", line 12: the text is not UTF-8 at byte 2");
}

TEST_CASE("invalid columns are errors with the key") {
  const tiny::Directory directory;
  const auto complaint = [&](const std::string& columns) -> std::string {
    try {
      classifier(directory, {{"data.columns", columns}});
    } catch (const DefinitionError& error) {
      return error.what();
    }
    return "nothing";
  };
  CHECK(complaint(R"({"tokens": "word"})").find("'data.columns.tokens' must be \"text\", \"label\", \"number\"") !=
        std::string::npos);
  CHECK(complaint(R"({"x": {"numbers": 0}})").find("'data.columns.x.numbers' must be a whole number from 1") !=
        std::string::npos);
  CHECK(complaint(R"({"a": "label", "b": "label"})").find("'data.columns.b' is a second column of labels") !=
        std::string::npos);
  CHECK(complaint(R"({"a": "skip"})").find("'data.columns' must have a column") != std::string::npos);
  CHECK(complaint(R"({"tokens": "text"})").find("the data has no 'labels'") != std::string::npos);
}

TEST_CASE("a failure that comes from an element of a table names its file and line") {
  const tiny::Directory directory;
  directory.write("squares.json", R"json({
    "xtape": 2, "name": "squares",
    "model": {
      "weights": {"w": {"shape": [], "init": "ones"}},
      "functions": {
        "loss": {
          "inputs": {"x": "float [b]", "y": "float [b]"},
          "do": ["masked = masked_fill(x, x < 0, 0)", "square = masked * masked", "error = w * square - y"],
          "result": "sum(error), sum(0 * y + 1)"
        }
      }
    }
  })json");
  std::string rows = "x,y\n";
  for (int i = 2; i <= 40; ++i) rows += (i == 23 ? "3e30" : std::to_string(i % 7)) + std::string(",1\n");
  directory.write("rows.csv", rows);
  const std::string recipe = directory.write("recipe.json", R"json({
    "xtape": 2, "name": "squares", "definition": "squares.json",
    "data": {"kind": "table", "table": "rows.csv", "header": true, "held_out": 5,
             "columns": {"x": "number", "y": "number"}},
    "batch": {"size": 8}, "optimizer": {"kind": "sgd"}, "schedule": {"kind": "constant", "rate": 1e-6}, "epochs": 1
  })json");
  for (const std::string shards : {"1", "2"}) {
    CAPTURE(shards);
    std::string error;
    try {
      Run run = Run::create(Recipe::load(recipe, {{"batch.shards", shards}}), directory / ("run" + shards));
      run.train();
    } catch (const TrainingError& thrown) {
      error = thrown.what();
    }
    CAPTURE(error);
    CHECK(error.find("inf in #") != std::string::npos);
    CHECK(error.find("input 'x' [") != std::string::npos);
    CHECK(error.find("rows.csv, line 23)") != std::string::npos);
  }
}

TEST_CASE("regression on columns of numbers") {
  const tiny::Directory directory;
  directory.write("line.json", R"json({
    "xtape": 2, "name": "line", "hyper": {"width": null},
    "model": {
      "weights": {"w": {"shape": ["width"], "init": "zeros"}, "c": {"shape": [], "init": "zeros"}},
      "functions": {
        "loss": {
          "inputs": {"x": "float [b, n]", "y": "float [b]"},
          "do": ["error = einsum('b n, n -> b', x, w) + c - y"],
          "result": "sum(error * error), sum(0 * error + 1)"
        }
      }
    }
  })json");
  std::string rows = "first,second,name,y\n";
  for (int i = 0; i < 50; ++i) {
    const double a = i % 7 / 7.0, b = i % 5 / 5.0;
    rows += std::to_string(a) + "," + std::to_string(b) + ",\"row, " + std::to_string(i) + "\"," +
            std::to_string(2 * a - 3 * b + 0.5) + "\n";
  }
  directory.write("rows.csv", rows);
  const std::string recipe = directory.write("recipe.json", R"json({
    "xtape": 2, "name": "line", "definition": "line.json", "hyper": {"width": 2},
    "data": {"kind": "table", "table": "rows.csv", "header": true, "held_out": 7,
             "columns": {"x": {"numbers": 2}, "name": "skip", "y": "number"}},
    "batch": {"size": 10}, "optimizer": {"kind": "adam"}, "schedule": {"kind": "constant", "rate": 0.1}, "epochs": 60
  })json");
  Run run = Run::create(Recipe::load(recipe), directory / "run");
  CHECK(run.batches().epoch_batches() == 5);  // of 43 rows
  CHECK(run.train());
  const Evaluation found = run.evaluate();
  CHECK(found.tokens == 7);
  CHECK(found.loss < 1e-3);
  const Array& w = run.model().weights().at("w");
  CHECK(w.as<float>()[0] == doctest::Approx(2).epsilon(0.05));
  CHECK(w.as<float>()[1] == doctest::Approx(-3).epsilon(0.05));
}

namespace {
/// `rows` rows of columns of these kinds. Each text has 5 tokens after its start token 2, of various lengths of
/// padding.
RowBatches columns_of(const std::vector<Column>& columns, std::int64_t count, const RowBatchesOptions& options) {
  DataRows rows = {columns, {}};
  for (std::int32_t i = 0; i < count; ++i) {
    std::vector<DataRows::Cell>& row = rows.rows.emplace_back();
    for (const Column& column : columns) {
      Tokens text(static_cast<std::size_t>(4 + i % 5), 5);
      if (column.kind == Column::Kind::label) text = {i % 2};
      row.push_back({text, {}});
    }
  }
  return RowBatches(rows, rows, options);
}
}  // namespace

TEST_CASE("a mean over rows counts each row once, for any kind of rows, batch size, shards and micro-batches") {
  using Kind = Column::Kind;
  // The mean of 1 over the rows with a token in their first place, and with a statistic of the batch, is 1.
  const auto definition = [](const std::string& inputs, const std::string& name) {
    const std::string head =
        R"json({"xtape": 2, "name": "mean", "model": {"weights": {"w": {"shape": [1], "init": "zeros"}},
      "functions": {)json";
    const auto function = [&](const char* measure, const std::string& result) {
      return std::string("\"") + measure + R"json(": {"inputs": {)json" + inputs + R"json(}, "result": ")json" +
             result + "\"}";
    };
    const std::string first = "cast(" + name + "[:, 0] == 5, 'float')";
    return head + function("loss", "mean(" + first + ") + sum(w)") + ", " +
           function("plain_loss", "mean(" + first + ")") + ", " + function("accuracy", "min(" + first + ")") + "}}}";
  };
  for (const Kind kind : {Kind::text, Kind::label, Kind::tags, Kind::target})
    for (const RowBatchesOptions& options :
         {RowBatchesOptions{.rows = 61}, {.rows = 32}, {.rows = 20}, {.rows = 7}, {.tokens = 64}, {.tokens = 300}}) {
      CAPTURE(static_cast<int>(kind));
      CAPTURE(options.rows);
      const RowBatches batches = columns_of({{"a", Kind::text}, {"other", kind}}, 61, options);
      std::string inputs = R"("a": "int [b, t]")";
      if (kind == Kind::target) inputs += R"(, "tokens": "int [b, s]", "targets": "int [b, s]")";
      Model model = Model::parse(definition(inputs, kind == Kind::target ? "tokens" : "a"));
      const Evaluation evaluation = evaluate(model, batches);
      CHECK(evaluation.loss == 1);
      CHECK(evaluation.perplexity.value() == doctest::Approx(std::exp(1.0)).epsilon(1e-15));
      CHECK(evaluation.accuracy == 1);
      CHECK(evaluation.tokens == 61);
      for (const std::int64_t shards : {1, 3})
        for (const std::int64_t accumulate : {1, 2}) {
          TrainerOptions training;
          training.shards = shards;
          training.accumulate = accumulate;
          training.schedule.rate = 0;
          Trainer trainer(model, batches, training);
          std::int64_t rows = 0;
          for (std::int64_t step = 0; step < batches.epoch_batches(); ++step) {
            const StepReport report = trainer.update();
            CHECK(report.loss == doctest::Approx(1));
            rows += report.tokens;
          }
          CHECK(rows == 61 * accumulate);
        }
    }
}
