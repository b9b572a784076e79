// BLEU against the scores and words of sacreBLEU in bleu.json.
#include "xtape/bleu.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "data/texts/texts.hpp"
#include "source_root.hpp"
#include "xtape/error.hpp"
#include "xtape/text.hpp"

using namespace xtape;

namespace {

const nlohmann::json& bleu_fixture() {
  static const auto json = nlohmann::json::parse(read_text(source_root() + "/tests/golden/data/bleu.json"));
  return json;
}

}  // namespace

TEST_CASE("BLEU: 13a cuts lines as sacreBLEU does") {
  REQUIRE(bleu_fixture().at("lines").size() > 50);
  for (const auto& entry : bleu_fixture().at("lines")) {
    const std::string line = entry.at("line");
    CAPTURE(line);
    CHECK(words_13a(line) == entry.at("words").get<std::vector<std::string>>());
  }
}

TEST_CASE("BLEU: scores, precisions and lengths are sacreBLEU's") {
  REQUIRE(bleu_fixture().at("corpora").size() == 10);
  for (const auto& corpus : bleu_fixture().at("corpora")) {
    const std::string name = corpus.at("name");
    CAPTURE(name);
    REQUIRE(corpus.at("scores").size() == 4);
    for (const auto& expected : corpus.at("scores")) {
      BleuOptions options;
      options.tokenize = expected.at("tokenize");
      options.lowercase = expected.at("lowercase");
      const Bleu bleu = corpus_bleu(corpus.at("hypotheses"), corpus.at("references"), options);
      CAPTURE(bleu.signature);
      CHECK(std::fabs(bleu.score - expected.at("score").get<double>()) < 1e-9);
      for (std::size_t i = 0; i < 4; ++i)
        CHECK(std::fabs(bleu.precisions[i] - expected.at("precisions").at(i).get<double>()) < 1e-9);
      CHECK(std::fabs(bleu.brevity_penalty - expected.at("brevity_penalty").get<double>()) < 1e-12);
      CHECK(bleu.hypothesis_length == expected.at("hypothesis_length"));
      CHECK(bleu.reference_length == expected.at("reference_length"));
    }
  }
}

TEST_CASE("BLEU: the signature says how the score was made") {
  const std::string mixed = corpus_bleu({"a"}, {"a"}).signature;
  CHECK(mixed.rfind("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:xtape-", 0) == 0);
  CHECK(mixed.back() >= '0');
  CHECK(mixed.back() <= '9');
  CHECK(corpus_bleu({"a"}, {"a"}, {"none", true}).signature.find("|case:lc|eff:no|tok:none|") != std::string::npos);
}

TEST_CASE("BLEU: what cannot be scored is refused") {
  CHECK_THROWS_WITH_AS(corpus_bleu({"a", "b"}, {"a"}),
                       "BLEU: needs one reference for each hypothesis, got 2 lines of hypotheses and 1 of references",
                       Error);
  CHECK_THROWS_WITH_AS(corpus_bleu({}, {}), "BLEU: there are no lines to score", Error);
  CHECK_THROWS_WITH_AS(corpus_bleu({"a"}, {"a"}, {"intl", false}), doctest::Contains("got \"intl\""), Error);
  CHECK_THROWS_WITH_AS(corpus_bleu({"a", "b"}, {"a", "b\xFF"}),
                       "line 2 of the references: the text is not UTF-8 at byte 1", Error);
}
