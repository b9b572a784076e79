#include <doctest/doctest.h>

#include "data/tokenizers/utf8.hpp"
#include "temporary_file.hpp"
#include "xtape/text.hpp"

using namespace xtape;

TEST_CASE("the character tokenizer numbers the text's characters by code point") {
  const CharacterTokenizer tokenizer("banana\n");
  CHECK(tokenizer.size() == 4);  // "\nabn"
  CHECK(tokenizer.encode("nab\n") == Tokens{3, 1, 2, 0});
  CHECK(tokenizer.decode({2, 1, 3}) == "ban");
  CHECK(tokenizer.encode("").empty());
  CHECK_THROWS_WITH_AS(tokenizer.decode({4}), "token 4 is outside the vocabulary of 4", Error);
  CHECK_THROWS_AS(tokenizer.decode({-1}), Error);
}

TEST_CASE("characters of several bytes are one token each") {
  const std::string text = "aé€𝄞";
  const CharacterTokenizer tokenizer(text);
  CHECK(tokenizer.size() == 4);
  CHECK(tokenizer.encode("𝄞aé€") == Tokens{3, 0, 1, 2});
  CHECK(tokenizer.decode(tokenizer.encode(text)) == text);
}

TEST_CASE("an unknown character is an error that names it and its byte, or an extra token") {
  const CharacterTokenizer strict("abc");
  CHECK_THROWS_WITH_AS(strict.encode("ab€"),
                       "character '€' (U+20AC) at byte 2 is not among the 3 characters of the tokenizer, which come "
                       "from the training text",
                       Error);
  CHECK_THROWS_WITH_AS(strict.encode("\t"), doctest::Contains("character U+0009 at byte 0"), Error);
  const CharacterTokenizer lenient("abc", CharacterTokenizer::Unknown::token);
  CHECK(lenient.size() == 4);
  CHECK(lenient.encode("a€c") == Tokens{0, 3, 2});
  CHECK(lenient.decode({0, 3}) == "a\uFFFD");
}

TEST_CASE("text that is not UTF-8 is an error with the byte") {
  const CharacterTokenizer tokenizer("abc");
  for (const char* wrong :
       {"ab\xFF", "ab\xC3", "ab\xC0\x80", "ab\xED\xA0\x80", "ab\xF4\x90\x80\x80", "ab\xE2\x82", "ab\x80"})
    CHECK_THROWS_WITH_AS(tokenizer.encode(wrong), "the text is not UTF-8 at byte 2", Error);
}

TEST_CASE("UTF-8 is encoded and decoded at the limits of its lengths") {
  for (const char32_t character :
       {0x00U, 0x7FU, 0x80U, 0x7FFU, 0x800U, 0xD7FFU, 0xE000U, 0xFFFFU, 0x10000U, 0x10FFFFU}) {
    std::string text;
    append_character(text, character);
    std::size_t at = 0;
    CHECK(next_character(text, at) == character);
    CHECK(at == text.size());
  }
}

TEST_CASE("characters can follow the four special tokens") {
  const CharacterTokenizer tokenizer("abc", CharacterTokenizer::Unknown::token, true);
  CHECK(tokenizer.size() == 7);
  CHECK(tokenizer.pad() == 0);
  CHECK(tokenizer.unknown() == 1);
  CHECK(tokenizer.start() == 2);
  CHECK(tokenizer.end() == 3);
  CHECK(tokenizer.encode("caé") == Tokens{6, 4, 1});
  CHECK(tokenizer.decode({2, 6, 4, 1, 3, 0, 0}) == "ca\uFFFD");
  CHECK(tokenizer.pieces({2, 6, 1, 3, 0}) == std::vector<std::string>{"<s>", "c", "\uFFFD", "</s>", "<pad>"});
  CHECK_THROWS_WITH_AS(tokenizer.pieces({7}), "token 7 is outside the vocabulary of 7", Error);
  CHECK_THROWS_AS(CharacterTokenizer("abc", CharacterTokenizer::Unknown::error, true).encode("é"), Error);
  const std::vector<std::string> lines = {"ca", "", "bc"};
  CHECK(CharacterTokenizer(lines, CharacterTokenizer::Unknown::token, true).to_json() == tokenizer.to_json());
}

TEST_CASE("without special tokens, only the unknown token can be added") {
  const CharacterTokenizer strict("abc");
  for (const std::int32_t token : {strict.pad(), strict.unknown(), strict.start(), strict.end()}) CHECK(token == -1);
  CHECK(CharacterTokenizer("abc", CharacterTokenizer::Unknown::token).unknown() == 3);
  CHECK(strict.pieces({0, 2}) == std::vector<std::string>{"a", "c"});
  CHECK(strict.files("tokenizer").empty());
}

TEST_CASE("a character tokenizer is saved and loaded") {
  for (const bool special : {false, true}) {
    for (const auto unknown : {CharacterTokenizer::Unknown::error, CharacterTokenizer::Unknown::token}) {
      const CharacterTokenizer tokenizer("x = \"é\"\n\t\\", unknown, special);
      const TemporaryFile file("tokenizer.json");
      save_tokenizer(tokenizer, file.path());
      const auto loaded = load_tokenizer(file.path());
      CHECK(loaded->size() == tokenizer.size());
      CHECK(loaded->start() == tokenizer.start());
      CHECK(loaded->encode("\té\\") == tokenizer.encode("\té\\"));
      CHECK(loaded->to_json() == tokenizer.to_json());
    }
  }
}

TEST_CASE("files without the key special_tokens are read") {
  const TemporaryFile file("old.json", R"({"xtape": 1, "kind": "character", "unknown": "token", "characters": "ab"})");
  const auto tokenizer = load_tokenizer(file.path());
  CHECK(tokenizer->size() == 3);
  CHECK(tokenizer->encode("bac") == Tokens{1, 0, 2});
}

TEST_CASE("files that are not tokenizers are errors that name the file") {
  for (const char* wrong :
       {"", "{", "[]", R"({"kind": 3})", R"({"kind": "character"})", R"({"kind": "bytes", "unknown": "error"})",
        R"({"kind": "character", "unknown": "perhaps", "characters": "ab"})",
        R"({"kind": "character", "unknown": "error", "characters": "ab", "special_tokens": 1})",
        R"({"kind": "words", "words": ["a"]})", R"({"kind": "words", "lower_case": false, "words": ["a", 1]})",
        R"({"kind": "words", "lower_case": false, "words": ["a", "b", "a"]})",
        R"({"kind": "words", "lower_case": false, "words": ["a", ""]})",
        R"({"kind": "words", "lower_case": false, "words": ["a", "b c"]})",
        R"({"kind": "words", "lower_case": false, "words": ["a", "<s>"]})"}) {
    CAPTURE(wrong);
    const TemporaryFile file("wrong.json", wrong);
    CHECK_THROWS_WITH_AS(load_tokenizer(file.path()), doctest::Contains(file.path().c_str()), FileError);
  }
  CHECK_THROWS_WITH_AS(load_tokenizer("/nonexistent/file"), doctest::Contains("No such file"), FileError);
}
