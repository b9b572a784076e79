// Sentences whose words have labels: files, rows and batches.
#include <doctest/doctest.h>

#include "temporary_file.hpp"
#include "xtape/text.hpp"

using namespace xtape;
using Kind = Column::Kind;

namespace {
std::string complaint(const std::string& contents, const TableOptions& options = {.delimiter = ' '}) {
  const TemporaryFile file("sentences", contents);
  try {
    read_sentences(file.path(), options);
  } catch (const FileError& error) {
    const std::string text = error.what();
    return text.substr(text.find(", line ") + 2);
  }
  return "nothing";
}
}  // namespace

TEST_CASE("sentences are read from lines of words and labels") {
  const TemporaryFile file("sentences",
                           "\n-DOCSTART- O\n\nthe  DET\ndog\tNOUN\r\n \t\n\nthe DET\n-DOCSTART- -X- O\nend NOUN");
  const SentenceTexts read = read_sentences(file.path(), {.delimiter = ' '});
  CHECK(read.columns == TableTexts{{"the dog", "the", "end"}, {"DET NOUN", "DET", "NOUN"}});
  CHECK(read.lines == std::vector<std::size_t>{4, 8, 10});

  const TemporaryFile fields("fields", "word\tpos\tname\na,b\tX\tO\n\"\tY\tB\n");
  const SentenceTexts three = read_sentences(fields.path(), {.columns = 3, .delimiter = '\t', .skip_lines = 1});
  CHECK(three.columns == TableTexts{{"a,b \""}, {"X Y"}, {"O B"}});
  CHECK(three.lines == std::vector<std::size_t>{2});
  CHECK(read_sentences(TemporaryFile("empty", "").path()).columns == TableTexts{{}, {}});
}

TEST_CASE("errors in files of sentences name their line") {
  CHECK(complaint("the DET\n\ndog\n") == "line 3: a row must have 2 fields separated by spaces or tabs, got 1");
  CHECK(complaint("the DET\nbig dog NOUN\n") ==
        "line 2: a row must have 2 fields separated by spaces or tabs, got more");
  CHECK(complaint("the\tDET\ndog\t\n", {}) == "line 2: field 2: '' must be one word");
  CHECK(complaint("the\tDET\nNew York\tNOUN\n", {}) == "line 2: field 1: 'New York' must be one word");
  CHECK(complaint("the DET\nNew\u00a0York NOUN\n") == "line 2: field 1: 'New\u00a0York' must be one word");
  CHECK(complaint("the DET\n\xff NOUN\n").find("line 2: field 1: ") == 0);
}

TEST_CASE("batches have the tags of tokens, and nothing to predict at others") {
  const std::vector<std::string> texts = {"a dog", "a"}, tags = {"D N", "D"}, names = {"D", "N"};
  const WordTokenizer tokenizer(texts);  // special tokens are 0 to 3
  const std::vector<ColumnTexts> columns = {{{"tokens", Kind::text}, &texts, &tokenizer},
                                            {{"tags", Kind::tags}, &tags, &tokenizer, "", &names}};
  const DataRows rows = rows_of(columns, 0, {});
  RowBatchesOptions options;
  options.rows = 3;
  options.bucket = 5;
  const RowBatches batches(rows, rows, options);
  BatchArrays batch = batches.blank();
  batches.validation(0, batch);
  const auto values = [&](const char* name) {
    const Array& array = batch.at(name);
    CHECK(array.shape() == Shape{2, 5});
    return std::vector<std::int64_t>(array.as<std::int64_t>(), array.as<std::int64_t>() + array.count());
  };
  const std::int64_t a = tokenizer.encode("a")[0], dog = tokenizer.encode("dog")[0];
  const std::int64_t start = tokenizer.start(), end = tokenizer.end();
  const auto joined = [](const std::vector<std::vector<std::int64_t>>& rows) {
    std::vector<std::int64_t> all;
    for (const auto& row : rows) all.insert(all.end(), row.begin(), row.end());
    return all;
  };
  CHECK(values("tokens") == joined({{start, a, dog, end, 0}, {start, a, end, 0, 0}}));
  CHECK(values("tags") == joined({{-1, 0, 1, -1, -1}, {-1, 0, -1, -1, -1}}));
}

TEST_CASE("tags need a token of each word, and labels that are known") {
  const std::vector<std::string> texts = {"a dog"}, tags = {"D N"}, names = {"D"}, fewer = {"D"};
  const WordTokenizer words(texts);
  const CharacterTokenizer characters(texts, CharacterTokenizer::Unknown::error, true);
  const auto place = [](std::size_t row, std::size_t column) { return "row " + std::to_string(10 * row + column); };
  const auto made = [&](const std::vector<std::string>& labelled, const std::vector<std::string>& known,
                        const Tokenizer& tokenizer) {
    return rows_of(
        {{{"tokens", Kind::text}, &texts, &tokenizer}, {{"tags", Kind::tags}, &labelled, &tokenizer, "", &known}}, 0,
        place);
  };
  CHECK_THROWS_WITH_AS(made(tags, names, words),
                       "row 1: column 'tags': word 2: 'N' is not one of the 1 labels of the training split", Error);
  CHECK_THROWS_WITH_AS(made(tags, {"D", "N"}, characters),
                       doctest::Contains("row 0: the tokenizer makes 5 tokens of 2 words: tags need"), Error);
  CHECK_THROWS_WITH_AS(made(fewer, names, words), doctest::Contains("makes 2 tokens of 1 words"), Error);
  CHECK_THROWS_WITH_AS(rows_of({{{"tags", Kind::tags}, &tags, &words}}, 0, place),
                       doctest::Contains("column 'tags' has no labels"), Error);
}
