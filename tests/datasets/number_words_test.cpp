#include "number_words.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <unordered_set>

#include "programs.hpp"

using namespace dataset;

TEST_CASE("numbers in words: every irregular number and every conjunction") {
  const struct {
    std::int64_t number;
    const char* portuguese;
    const char* english;
  } cases[] = {
      {0, "zero", "zero"},
      {1, "um", "one"},
      {2, "dois", "two"},
      {3, "três", "three"},
      {4, "quatro", "four"},
      {5, "cinco", "five"},
      {6, "seis", "six"},
      {7, "sete", "seven"},
      {8, "oito", "eight"},
      {9, "nove", "nine"},
      {10, "dez", "ten"},
      {11, "onze", "eleven"},
      {12, "doze", "twelve"},
      {13, "treze", "thirteen"},
      {14, "catorze", "fourteen"},
      {15, "quinze", "fifteen"},
      {16, "dezesseis", "sixteen"},
      {17, "dezessete", "seventeen"},
      {18, "dezoito", "eighteen"},
      {19, "dezenove", "nineteen"},
      {20, "vinte", "twenty"},
      {21, "vinte e um", "twenty-one"},
      {30, "trinta", "thirty"},
      {42, "quarenta e dois", "forty-two"},
      {50, "cinquenta", "fifty"},
      {63, "sessenta e três", "sixty-three"},
      {70, "setenta", "seventy"},
      {84, "oitenta e quatro", "eighty-four"},
      {99, "noventa e nove", "ninety-nine"},
      {100, "cem", "one hundred"},
      {101, "cento e um", "one hundred and one"},
      {116, "cento e dezesseis", "one hundred and sixteen"},
      {200, "duzentos", "two hundred"},
      {241, "duzentos e quarenta e um", "two hundred and forty-one"},
      {300, "trezentos", "three hundred"},
      {412, "quatrocentos e doze", "four hundred and twelve"},
      {500, "quinhentos", "five hundred"},
      {630, "seiscentos e trinta", "six hundred and thirty"},
      {707, "setecentos e sete", "seven hundred and seven"},
      {800, "oitocentos", "eight hundred"},
      {999, "novecentos e noventa e nove", "nine hundred and ninety-nine"},
      {1000, "mil", "one thousand"},
      {1005, "mil e cinco", "one thousand and five"},
      {1099, "mil e noventa e nove", "one thousand and ninety-nine"},
      {1100, "mil e cem", "one thousand one hundred"},
      {1101, "mil cento e um", "one thousand one hundred and one"},
      {1234, "mil duzentos e trinta e quatro", "one thousand two hundred and thirty-four"},
      {1500, "mil e quinhentos", "one thousand five hundred"},
      {2000, "dois mil", "two thousand"},
      {2100, "dois mil e cem", "two thousand one hundred"},
      {12304, "doze mil trezentos e quatro", "twelve thousand three hundred and four"},
      {21021, "vinte e um mil e vinte e um", "twenty-one thousand and twenty-one"},
      {100000, "cem mil", "one hundred thousand"},
      {100100, "cem mil e cem", "one hundred thousand one hundred"},
      {101001, "cento e um mil e um", "one hundred and one thousand and one"},
      {999999, "novecentos e noventa e nove mil novecentos e noventa e nove",
       "nine hundred and ninety-nine thousand nine hundred and ninety-nine"},
  };
  for (const auto& [number, portuguese, english] : cases) {
    CHECK(words_of(number).portuguese == portuguese);
    CHECK(words_of(number).english == english);
  }
}

TEST_CASE("no two numbers have the same words in either language") {
  std::unordered_set<std::size_t> portuguese;
  std::unordered_set<std::size_t> english;
  const std::hash<std::string> hash;
  for (std::int64_t number = 0; number < number_words_end; ++number) {
    const NumberWords words = words_of(number);
    portuguese.insert(hash(words.portuguese));
    english.insert(hash(words.english));
  }
  CHECK(portuguese.size() == static_cast<std::size_t>(number_words_end));
  CHECK(english.size() == static_cast<std::size_t>(number_words_end));
}

TEST_CASE("numbers that are too large are errors") {
  CHECK_THROWS_WITH_AS(words_of(1000000), "the number 1000000 is outside 0 to 999999", std::out_of_range);
  CHECK_THROWS_AS(words_of(-1), std::out_of_range);
}

TEST_CASE("held-out numbers are not in the training split, and are independent of its size") {
  const xtape::test::Folder folder;
  REQUIRE(run_program("number_words", folder.path() + "/a 5000 1500") == 0);
  const auto training = xtape::read_pairs(folder.path() + "/a/training.tsv");
  const auto held_out = xtape::read_pairs(folder.path() + "/a/validation.tsv");
  CHECK(training.source.size() == 5000);
  CHECK(held_out.target.size() == 1500);
  const std::unordered_set<std::string> trained(training.source.begin(), training.source.end());
  for (const std::string& words : held_out.source) CHECK(trained.count(words) == 0);
  REQUIRE(run_program("number_words", folder.path() + "/b 10 1500") == 0);
  CHECK(xtape::read_pairs(folder.path() + "/b/validation.tsv").source == held_out.source);
  for (const char* wrong : {"", "c 0", "c 999000 1001", "c 10 x", "c 99999999999999999999"})
    CHECK(run_program("number_words", wrong) == 2);
}
