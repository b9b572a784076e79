// Runs on data in several files.
#include <doctest/doctest.h>

#include "source_root.hpp"
#include "tiny.hpp"

using namespace xtape;

namespace {
/// The loss of a short training, which any difference in the data changes.
double trained_loss(const Recipe& recipe, const std::string& path) {
  Run run = Run::create(recipe, path);
  CHECK(run.train());
  CHECK(Run::open(path).evaluate().loss == run.evaluate().loss);  // the run's recipe has the files, too
  return run.evaluate().loss;
}

std::string complaint(const Recipe& recipe, const std::string& path) {
  try {
    Run::create(recipe, path);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

Recipe table(const tiny::Directory& directory, const std::vector<Setting>& settings) {
  return Recipe::load(directory.write("recipe.json", R"json({
  "xtape": 2,
  "name": "languages",
  "definition": ")json" + source_root() + R"json(/models/text_classifier.json",
  "hyper": {"vocab_size": {"from": "vocabulary"}, "classes": {"from": "labels"}, "width": 8, "dropout_rate": 0},
  "data": {"kind": "table", "table": "all.tsv", "columns": {"label": "label", "tokens": "text"}, "header": true},
  "tokenizer": {"kind": "words"},
  "batch": {"size": 2},
  "optimizer": {"kind": "adam"},
  "schedule": {"kind": "constant", "rate": 0.02},
  "epochs": 2
})json"),
                      settings);
}
}  // namespace

TEST_CASE("a list of files trains like one file with their contents") {
  const tiny::Directory directory;
  const std::string sums = tiny::sums_text();
  const std::size_t end = sums.find('\n', sums.size() / 2) + 1;
  for (const std::vector<Setting>& kind : {std::vector<Setting>{},
                                           {{"data.kind", "text"},
                                            {"data.separator", "null"},
                                            {"data.held_out", "null"},
                                            {"data.prompt_end", "null"},
                                            {"data.block_size", "12"},
                                            {"data.split", "0.8"},
                                            {"measure", "null"}}}) {
    std::vector<Setting> settings = kind;
    const double whole = trained_loss(tiny::load(directory, settings), directory / "whole");
    directory.write("a.txt", sums.substr(0, end - 1));  // without its last line end
    directory.write("b.txt", sums.substr(end));
    settings.push_back({"data.text", "[\"" + directory / "a.txt" + "\", \"" + directory / "b.txt" + "\"]"});
    CHECK(trained_loss(tiny::load(directory, settings), directory / "parts") == whole);
    directory.write("b.txt", sums.substr(end, sums.size() - end - 4) + "9=9\n");
    CHECK(trained_loss(tiny::load(directory, settings), directory / "changed") != whole);
    for (const char* run : {"whole", "parts", "changed"}) tiny::fs::remove_all(directory / run);
  }
}

TEST_CASE("a document ends with its file") {
  const tiny::Directory directory;
  const std::vector<Setting> settings = {
      {"data", R"({"kind": "documents", "text": ["a.txt", "b.txt"], "split": 0.67})"},
      {"data.folder", directory / ""},
      {"measure", "null"},
      {"batch", R"({"size": 1})"}};
  const Recipe recipe = tiny::load(directory, settings);
  directory.write("a.txt", "1+1=2\n\n1+2=\n3");
  directory.write("b.txt", "1+2=3\n");
  CHECK(Run::create(recipe, directory / "run").batches().epoch_batches() == 2);  // of three texts
}

TEST_CASE("rows of several tables are named by their own file and line") {
  const tiny::Directory directory;
  directory.write("all.tsv", "label\ttext\nEnglish\ta dog\nGerman\tein hund\nEnglish\ta house\nGerman\tein haus\n");
  directory.write("a.tsv", "label\ttext\nEnglish\ta dog\nGerman\tein hund\n");
  directory.write("b.tsv", "label\ttext\nEnglish\ta house\nGerman\tein haus\n");
  const Setting parts = {"data.table", "[\"" + directory / "a.tsv" + "\", \"" + directory / "b.tsv" + "\"]"};
  const double whole = trained_loss(table(directory, {{"data.held_out", "1"}}), directory / "whole");
  CHECK(trained_loss(table(directory, {parts, {"data.held_out", "1"}}), directory / "parts") == whole);

  directory.write("b.tsv", "label\ttext\nEnglish\ta house\nDutch\teen huis\n");
  CHECK(complaint(table(directory, {parts, {"data.held_out", "1"}}), directory / "run") ==
        directory / "b.tsv" + ", line 3: column 'label': 'Dutch' is not one of the 2 labels of the training split");
  directory.write("a.tsv", "label\ttext\nEnglish\ta dog\n\tein hund\n");
  CHECK(complaint(table(directory, {parts}), directory / "run") ==
        directory / "a.tsv" + ", line 3: column 'label': the label is empty");
  directory.write("b.tsv", "label\ttext\nEnglish\n");
  CHECK(complaint(table(directory, {parts}), directory / "run").find("b.tsv, line 2: a row must have 2 fields") !=
        std::string::npos);
  const Setting missing = {"data.table", "[\"" + directory / "a.tsv" + "\", \"" + directory / "c.tsv" + "\"]"};
  CHECK(complaint(table(directory, {missing}), directory / "run").find("cannot read " + directory / "c.tsv") !=
        std::string::npos);
}
