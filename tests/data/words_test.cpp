#include <doctest/doctest.h>

#include "data/tokenizers/utf8.hpp"
#include "temporary_file.hpp"
#include "xtape/error.hpp"
#include "xtape/text.hpp"

using namespace xtape;

namespace {

using Strings = std::vector<std::string>;

const Strings german = {"Zwei Hunde laufen über die Straße .", "Ein Hund läuft , zwei Hunde schlafen .",
                        "Äpfel und Öl über der Tür ."};

}  // namespace

TEST_CASE("words are separated by white space of every kind") {
  CHECK(words_in(" a\tb\u00A0\u3000c\r\nd ") == Strings{"a", "b", "c", "d"});
  CHECK(words_in("").empty());
  CHECK(words_in(" \n").empty());
  CHECK(words_in("zero\u200Bwidth") == Strings{"zero\u200Bwidth"});
  CHECK_THROWS_WITH_AS(words_in("ab \xFF"), "the text is not UTF-8 at byte 3", Error);
}

TEST_CASE("lower-casing covers more than ASCII") {
  CHECK(lower_cased("Straße ÄÖÜ ẞ É Ñ ŁÓDŹ") == "straße äöü ß é ñ łódź");
  CHECK(lower_cased("ПРИВЕТ, Мир!") == "привет, мир!");
  CHECK(lower_cased("ΆΝΘΡΩΠΟΣ ΟΔΟΣ. ΣΑΣ Σ ΣΣ") == "άνθρωπος οδος. σας σ σς");
  CHECK(lower_cased("İI 𐐀 ǅ K 日本 1") == "i\u0307i 𐐨 ǆ k 日本 1");
  CHECK(lower_cased("").empty());
  CHECK_THROWS_AS(lower_cased("A\xC3"), Error);
}

TEST_CASE("words are numbered after the special tokens by decreasing count, then by their bytes") {
  const WordTokenizer tokenizer(german);
  CHECK(tokenizer.pad() == 0);
  CHECK(tokenizer.unknown() == 1);
  CHECK(tokenizer.start() == 2);
  CHECK(tokenizer.end() == 3);
  CHECK(tokenizer.pieces({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) ==
        Strings{"<pad>", "<unk>", "<s>", "</s>", ".", "Hunde", "über", ",", "Ein", "Hund"});
  CHECK(tokenizer.size() == 4 + 18);
}

TEST_CASE("words decode to the text, and unknown words to the unknown token") {
  const WordTokenizer tokenizer(german);
  for (const std::string& line : german) CHECK(tokenizer.decode(tokenizer.encode(line)) == line);
  CHECK(tokenizer.encode("  Hunde\t. ") == Tokens{5, 4});
  CHECK(tokenizer.encode("Katzen über hunde") == Tokens{1, 6, 1});
  CHECK(tokenizer.decode({2, 1, 6, 1, 3, 0, 0}) == "<unk> über <unk>");
  CHECK(tokenizer.encode("").empty());
  CHECK(tokenizer.decode({}).empty());
  CHECK_THROWS_WITH_AS(tokenizer.decode({22}), "token 22 is outside the vocabulary of 22", Error);
  CHECK_THROWS_WITH_AS(tokenizer.encode("Hund \xC3"), "the text is not UTF-8 at byte 5", Error);
  CHECK_THROWS_WITH_AS(WordTokenizer({"a", "b\xFF"}), "line 2 of the text: the text is not UTF-8 at byte 1", Error);
}

TEST_CASE("the names of special tokens in a text are unknown words") {
  const WordTokenizer tokenizer({"a <s> a </s> <pad>"});
  CHECK(tokenizer.size() == 5);
  CHECK(tokenizer.encode("<s> a <pad> </s>") == Tokens{1, 4, 1, 1});
}

TEST_CASE("rare words can be left out, and text can be lower-cased") {
  WordOptions options;
  options.minimum_count = 2;
  CHECK(WordTokenizer(german, options).size() == 4 + 3);  // . Hunde über
  options.lower_case = true;
  const WordTokenizer tokenizer(german, options);
  CHECK(tokenizer.pieces({4, 5, 6, 7}) == Strings{".", "hunde", "zwei", "über"});
  CHECK(tokenizer.size() == 8);
  CHECK(tokenizer.encode("ÜBER Hunde HUND") == Tokens{7, 5, 1});
}

TEST_CASE("the vocabulary size is rounded up to a multiple") {
  WordOptions options;
  options.multiple = 8;
  const WordTokenizer tokenizer({"a b c <fill1>"}, options);
  CHECK(tokenizer.size() == 8);
  CHECK(WordTokenizer({"a b c d e"}, options).size() == 16);
  CHECK(WordTokenizer({"a b c d e"}, options).pieces({8, 9, 15}) == Strings{"e", "<fill0>", "<fill6>"});
  CHECK(WordTokenizer({"a b c <fill0>"}, options).size() == 8);
  CHECK(WordTokenizer({"a b <fill0>"}, options).pieces({4, 7}) == Strings{"<fill0>", "<fill1>"});
  for (const std::int64_t multiple : {std::int64_t{-1}, most_pieces + 1, std::int64_t{1000000000}, INT64_MAX}) {
    options.multiple = multiple;
    CHECK_THROWS_WITH_AS(
        WordTokenizer({"a"}, options),
        ("the multiple of a vocabulary's size must be 1 to 1048576, got " + std::to_string(multiple)).c_str(), Error);
  }
  options.multiple = 0;
  CHECK_THROWS_WITH_AS(WordTokenizer({"a"}, options), doctest::Contains("got 0"), Error);
}

TEST_CASE("a vocabulary can be given") {
  const WordTokenizer tokenizer = WordTokenizer::with_vocabulary({"über 12", "<unk> 3", "Hund", ". 1000"});
  CHECK(tokenizer.size() == 7);
  CHECK(tokenizer.encode("Hund über .") == Tokens{5, 4, 6});
  CHECK_THROWS_WITH_AS(WordTokenizer::with_vocabulary({"a", "b", "a 3"}),
                       "line 3 of the vocabulary: the word 'a' is repeated", Error);
  CHECK_THROWS_WITH_AS(WordTokenizer::with_vocabulary({"a", " "}), "line 2 of the vocabulary: there is no word", Error);
}

TEST_CASE("a word tokenizer is saved and loaded") {
  WordOptions options;
  options.multiple = 8;
  options.lower_case = true;
  const WordTokenizer tokenizer(german, options);
  const TemporaryFile file("words.json");
  save_tokenizer(tokenizer, file.path());
  const auto loaded = load_tokenizer(file.path());
  CHECK(loaded->to_json() == tokenizer.to_json());
  CHECK(loaded->size() == tokenizer.size());
  CHECK(loaded->encode("ZWEI Katzen") == tokenizer.encode("zwei Katzen"));
}
