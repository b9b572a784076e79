// Documents: each text is a row.
#include <doctest/doctest.h>

#include "xtape/text.hpp"
#include "xtape/tokenizers.hpp"

using namespace xtape;
using Strings = std::vector<std::string>;

namespace {
std::vector<std::int64_t> row(const Array& array, std::int64_t number) {
  const std::int64_t* first = array.as<std::int64_t>() + number * array.shape()[1];
  return {first, first + array.shape()[1]};
}
using Row = std::vector<std::int64_t>;
}  // namespace

TEST_CASE("a file's texts are its lines, or are separated by blank lines") {
  const std::string text = "\n\none\ntwo\r\n \t\nthree\n\n\n";
  CHECK(split_documents(text, DocumentEnd::line) == Strings{"one", "two", "three"});
  CHECK(split_documents(text, DocumentEnd::blank_line) == Strings{"one\ntwo", "three"});
  CHECK(split_documents("no end", DocumentEnd::blank_line) == Strings{"no end"});
  CHECK(split_documents("", DocumentEnd::line).empty());
}

TEST_CASE("texts get start and end tokens; empty and long texts are left out") {
  const CharacterTokenizer tokenizer("abc", CharacterTokenizer::Unknown::error, true);
  const DataRows rows = documents_of({"ab", "", "abcab"}, tokenizer, 4);
  REQUIRE(rows.rows.size() == 1);
  CHECK(rows.columns.size() == 1);
  CHECK(rows.rows[0][0].tokens == Tokens{2, 4, 5, 3});
  CHECK(rows.rows[0][0].given.empty());
  CHECK(documents_of({"ab", "", "abcab"}, tokenizer).rows.size() == 2);
  CHECK_THROWS_WITH_AS(documents_of({"ab", "x"}, tokenizer), doctest::Contains("text 2: "), Error);
  CHECK_THROWS_WITH_AS(documents_of({"ab"}, CharacterTokenizer("ab")), doctest::Contains("no start and end tokens"),
                       Error);
}

TEST_CASE("a batch of texts has tokens, the next tokens as targets, then padding") {
  const CharacterTokenizer tokenizer("abc", CharacterTokenizer::Unknown::error, true);
  const DataRows rows = documents_of({"ab", "abcab", "c"}, tokenizer);
  const RowBatches batches(rows, rows, {.rows = 2, .bucket = 4});
  BatchArrays batch = batches.blank();
  CHECK(batch.size() == 2);
  CHECK(batch.at("tokens").shape() == Shape{2, 4});
  CHECK(batches.epoch_batches() == 2);
  batches.validation(0, batch);  // the two short texts, rounded up to the bucket
  CHECK(row(batch.at("tokens"), 0) == Row{2, 4, 5, 0});
  CHECK(row(batch.at("targets"), 0) == Row{4, 5, 3, -1});
  CHECK(row(batch.at("tokens"), 1) == Row{2, 6, 0, 0});
  CHECK(row(batch.at("targets"), 1) == Row{6, 3, -1, -1});
  batches.validation(1, batch);
  CHECK(row(batch.at("tokens"), 0) == Row{2, 4, 5, 6, 4, 5, 0, 0});
  CHECK(batch.at("tokens").shape() == Shape{1, 8});
  CHECK(batch.at("targets").shape() == Shape{1, 8});
  CHECK_THROWS_WITH_AS(RowBatches({}, rows, {}), "the training split has no rows", Error);
}

TEST_CASE("the prompt is not a target: the targets are the answer and the end token") {
  CHECK(split_prompt("1+2=3", "=").prompt == "1+2=");
  CHECK(split_prompt("a=b=c", "=").answer == "b=c");
  CHECK(split_prompt("a ### ", " ### ").answer.empty());
  CHECK_THROWS_WITH_AS(split_prompt("1+2", "="), "there is no '=' to end the prompt", Error);
  const CharacterTokenizer tokenizer("ab=", CharacterTokenizer::Unknown::error, true);  // '=' is 4, 'a' 5, 'b' 6
  const DataRows rows = documents_of({"a=b", "bb=", "=ab"}, tokenizer, 0, "=");
  const RowBatches batches(rows, rows, {.rows = 3, .bucket = 1});
  BatchArrays batch = batches.blank();
  batches.validation(0, batch);
  CHECK(row(batch.at("tokens"), 0) == Row{2, 5, 4, 6});
  CHECK(row(batch.at("targets"), 0) == Row{-1, -1, 6, 3});
  CHECK(row(batch.at("tokens"), 1) == Row{2, 6, 6, 4});
  CHECK(row(batch.at("targets"), 1) == Row{-1, -1, -1, 3});
  CHECK(row(batch.at("targets"), 2) == Row{-1, 5, 6, 3});
  CHECK_THROWS_WITH_AS(documents_of({"a=b", "ab"}, tokenizer, 0, "="), "text 2: there is no '=' to end the prompt",
                       Error);
}
