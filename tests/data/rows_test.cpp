#include <doctest/doctest.h>

#include "xtape/text.hpp"

using namespace xtape;

namespace {
const auto strict = CharacterTokenizer::Unknown::error;
const CharacterTokenizer letters("abc", strict, true), digits("12", strict, true);

std::vector<std::int64_t> elements(const Array& array) {
  return {array.as<std::int64_t>(), array.as<std::int64_t>() + array.count()};
}
}  // namespace

TEST_CASE("a text gets start and end tokens") {
  CHECK(framed(letters, "ca") == Tokens{2, 6, 4, 3});
  CHECK(framed(letters, "") == Tokens{2, 3});
  CHECK_THROWS_WITH_AS(framed(CharacterTokenizer("abc"), "a"),
                       "the tokenizer has no start and end tokens to put around a text", Error);
}

TEST_CASE("lines and their translations become pairs, except empty and too long ones") {
  const PairTexts texts = {{"a", "", "abc", "bc"}, {"12", "1", "1", "222"}};
  const DataRows all = pairs_of(texts, letters, digits);
  REQUIRE(all.rows.size() == 3);
  CHECK(all.columns[0].name == "source");
  CHECK(all.rows[0][0].tokens == Tokens{2, 4, 3});
  CHECK(all.rows[0][1].tokens == Tokens{2, 4, 5, 3});
  CHECK(all.rows[2][0].tokens == Tokens{2, 5, 6, 3});
  CHECK(pairs_of(texts, letters, digits, 2).rows.size() == 1);
  CHECK(pairs_of(texts, letters, digits, 3).rows.size() == 3);
}

TEST_CASE("errors of pairs that cannot be read name the line") {
  CHECK_THROWS_WITH_AS(pairs_of({{"a", "b"}, {"1", "a"}}, letters, digits), doctest::Contains("line 2 of the target: "),
                       Error);
  CHECK_THROWS_WITH_AS(pairs_of({{"a", "b"}, {"1"}}, letters, digits),
                       "pairs need a target for every source, got 2 sources and 1 targets", Error);
}

TEST_CASE("rows of tokens become an array with padding") {
  const std::vector<Tokens> rows = {{5, 6, 7}, {8}};
  const Array exact = token_array(rows, 9);
  CHECK(exact.shape() == Shape{2, 3});
  CHECK(elements(exact) == std::vector<std::int64_t>{5, 6, 7, 8, 9, 9});
  const Array rounded = token_array(rows, 0, 4);
  CHECK(rounded.shape() == Shape{2, 4});
  CHECK(elements(rounded) == std::vector<std::int64_t>{5, 6, 7, 0, 8, 0, 0, 0});
  CHECK(token_array({}).shape() == Shape{0, 0});
  CHECK_THROWS_WITH_AS(token_array(rows, 0, 0), "multiple must be 1 to 2147483648, got 0", Error);
  CHECK_THROWS_WITH_AS(token_array(rows, 0, INT64_MAX), "multiple must be 1 to 2147483648, got 9223372036854775807",
                       Error);
}

TEST_CASE("rows of texts, labels and numbers follow their columns") {
  const std::vector<std::string> texts = {"a", "", "cb"}, labels = {"no", "no", "yes"}, names = {"no", "yes"};
  const TableTexts numbers = {{"1", "x", " -2.5e0 "}, {"0", "0", "7"}};
  const std::vector<ColumnTexts> columns = {{{"words"}, &texts, &letters},
                                            {{"x", Column::Kind::number, 0, 2}, numbers.data()},
                                            {{"label", Column::Kind::label}, &labels, nullptr, "", &names}};
  const TextPlace place = [](std::size_t row, std::size_t column) {
    return "row " + std::to_string(row) + ", column " + std::to_string(column);
  };
  CHECK_THROWS_WITH_AS(rows_of(columns, 0, place),
                       doctest::Contains("row 1, column 1: column 'x': 'x' is not a finite number"), Error);
  for (const std::string wrong : {"", " ", "1 2", "1,5", "nan", "inf", "1e99", "0x10"}) {
    const TableTexts bad = {{"1", wrong, "3"}};
    const bool missing = wrong.empty() || wrong == " " || wrong == "nan";
    CHECK_THROWS_WITH_AS(rows_of({{{"x", Column::Kind::number}, bad.data()}}, 0, place),
                         doctest::Contains(missing ? "the value is missing" : "is not a finite number"), Error);
  }
  const TableTexts right = {{"1", "2", " -2.5e0 "}, {"0", "0", "7"}};
  std::vector<ColumnTexts> others = columns;
  others[1].texts = right.data();
  const DataRows rows = rows_of(others, 0, place);
  REQUIRE(rows.rows.size() == 2);  // without the empty text
  CHECK(rows.rows[1][0].tokens == Tokens{2, 6, 5, 3});
  CHECK(rows.rows[1][1].numbers == std::vector<float>{-2.5F, 7});
  CHECK(rows.rows[0][2].tokens == Tokens{0});
  CHECK(rows.rows[1][2].tokens == Tokens{1});
  const std::vector<std::string> unknown = {"no", "maybe", "yes"};
  others[2].texts = &unknown;
  CHECK_THROWS_WITH_AS(rows_of(others, 0, place),
                       "row 1, column 2: column 'label': 'maybe' is not one of the 2 labels of the training split",
                       Error);
}
