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

TEST_CASE("a text stands between start and end") {
  CHECK(framed(letters, "ca") == Tokens{2, 6, 4, 3});
  CHECK(framed(letters, "") == Tokens{2, 3});
  CHECK_THROWS_WITH_AS(framed(CharacterTokenizer("abc"), "a"),
                       "the tokenizer has no start and end tokens to put around a text", Error);
}

TEST_CASE("lines and their translations become pairs, those that are empty or too long left out") {
  const PairTexts texts = {{"a", "", "abc", "bc"}, {"12", "1", "1", "222"}};
  const std::vector<Pair> all = pairs_of(texts, letters, digits);
  REQUIRE(all.size() == 3);
  CHECK(all[0].source == Tokens{2, 4, 3});
  CHECK(all[0].target == Tokens{2, 4, 5, 3});
  CHECK(all[2].source == Tokens{2, 5, 6, 3});
  CHECK(pairs_of(texts, letters, digits, 2).size() == 1);
  CHECK(pairs_of(texts, letters, digits, 3).size() == 3);
}

TEST_CASE("pairs that cannot be read name the line") {
  CHECK_THROWS_WITH_AS(pairs_of({{"a", "b"}, {"1", "a"}}, letters, digits), doctest::Contains("line 2 of the target: "),
                       Error);
  CHECK_THROWS_WITH_AS(pairs_of({{"a", "b"}, {"1"}}, letters, digits),
                       "pairs need a target for every source, got 2 sources and 1 targets", Error);
}

TEST_CASE("rows of tokens fill an array up with padding") {
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
