// Texts that are rows of their own.
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

TEST_CASE("a file's texts are its lines, or what blank lines separate") {
  const std::string text = "\n\none\ntwo\r\n \t\nthree\n\n\n";
  CHECK(split_documents(text, DocumentEnd::line) == Strings{"one", "two", "three"});
  CHECK(split_documents(text, DocumentEnd::blank_line) == Strings{"one\ntwo", "three"});
  CHECK(split_documents("no end", DocumentEnd::blank_line) == Strings{"no end"});
  CHECK(split_documents("", DocumentEnd::line).empty());
}

TEST_CASE("texts stand between start and end; empty and long ones are left out") {
  const CharacterTokenizer tokenizer("abc", CharacterTokenizer::Unknown::error, true);
  const std::vector<Pair> rows = documents_of({"ab", "", "abcab"}, tokenizer, 4);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].source.empty());
  CHECK(rows[0].target == Tokens{2, 4, 5, 3});
  CHECK(documents_of({"ab", "", "abcab"}, tokenizer).size() == 2);
  CHECK_THROWS_WITH_AS(documents_of({"ab", "x"}, tokenizer), doctest::Contains("text 2: "), Error);
  CHECK_THROWS_WITH_AS(documents_of({"ab"}, CharacterTokenizer("ab")), doctest::Contains("no start and end tokens"),
                       Error);
}

TEST_CASE("a batch of texts is tokens and what follows each, then padding") {
  const CharacterTokenizer tokenizer("abc", CharacterTokenizer::Unknown::error, true);
  const std::vector<Pair> rows = documents_of({"ab", "abcab", "c"}, tokenizer);
  const PairBatches batches(rows, rows, {.sources = false, .rows = 2, .bucket = 4});
  Batch batch = batches.blank();
  CHECK(batch.size() == 2);
  CHECK(batch.at("tokens").shape() == Shape{2, 8});
  CHECK(batches.epoch_batches() == 2);
  batches.validation(0, batch);  // the two short ones, rounded up to the bucket
  CHECK(row(batch.at("tokens"), 0) == Row{2, 4, 5, 0});
  CHECK(row(batch.at("targets"), 0) == Row{4, 5, 3, -1});
  CHECK(row(batch.at("tokens"), 1) == Row{2, 6, 0, 0});
  CHECK(row(batch.at("targets"), 1) == Row{6, 3, -1, -1});
  batches.validation(1, batch);
  CHECK(row(batch.at("tokens"), 0) == Row{2, 4, 5, 6, 4, 5, 0, 0});
  CHECK(row(batch.at("tokens"), 1) == Row(8, 0));
  CHECK(row(batch.at("targets"), 1) == Row(8, -1));
  CHECK_THROWS_WITH_AS(PairBatches({}, rows, {.sources = false}), "the training part has no text", Error);
  CHECK_THROWS_AS(PairBatches({{{2, 3}, {2, 3}}}, rows, {.sources = false}), Error);
}
