// Translation of einsum's words to letters.
#include "ops/linear_algebra/equation.hpp"

#include <doctest/doctest.h>

using namespace xtape;

TEST_CASE("an equation of letters is unchanged") {
  for (const std::string text : {"bqd,bkd->bqk", "bqd, bkd -> bqk", "...i,io->...o", "ij", "ij,jk", "->", ","}) {
    CHECK(in_labels(text).text == text);
    CHECK(in_labels(text).names.empty());
  }
}

TEST_CASE("each word becomes a letter, different words different letters") {
  const LabelledEquation made = in_labels("b query h d, b key h d -> b h query key");
  const Equation equation = parse_equation(made.text, {{2, 3, 4, 5}, {2, 6, 4, 5}});
  const std::string& q = equation.operands[0];
  const std::string& k = equation.operands[1];
  REQUIRE(q.size() == 4);
  CHECK(q[0] == k[0]);
  CHECK(q[1] != k[1]);
  CHECK(q.substr(2) == k.substr(2));
  CHECK(equation.result == std::string{q[0], q[2], q[1], k[1]});
  CHECK(made.names.find(std::string{q[1]} + " is query") != std::string::npos);
}

TEST_CASE("a word that is not a valid name is refused, and so is an equation of words without a result") {
  CHECK_THROWS_AS(in_labels("b 2q, b k -> b"), ShapeError);
  CHECK_THROWS_WITH_AS(in_labels("b q, b k"), doctest::Contains("->"), ShapeError);
}
