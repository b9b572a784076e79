#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "utf8.hpp"
#include "xtape/text.hpp"

using namespace xtape;
namespace fs = std::filesystem;

namespace {
fs::path written(const std::string& name, const std::string& text) {
  const fs::path path = fs::temp_directory_path() / ("xtape_text_" + std::to_string(getpid()) + "_" + name);
  std::ofstream(path, std::ios::binary) << text;
  return path;
}
}  // namespace

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

TEST_CASE("an unknown character is an error that says which and where, or one more token") {
  const CharacterTokenizer strict("abc");
  CHECK_THROWS_WITH_AS(strict.encode("ab€"),
                       "character '€' (U+20AC) at byte 2 is not among the 3 characters that the tokenizer knows from "
                       "the training text",
                       Error);
  CHECK_THROWS_WITH_AS(strict.encode("\t"), doctest::Contains("character U+0009 at byte 0"), Error);
  const CharacterTokenizer lenient("abc", CharacterTokenizer::Unknown::token);
  CHECK(lenient.size() == 4);
  CHECK(lenient.encode("a€c") == Tokens{0, 3, 2});
  CHECK(lenient.decode({0, 3}) == "a\uFFFD");
}

TEST_CASE("text that is not UTF-8 is refused, with the place") {
  const CharacterTokenizer tokenizer("abc");
  for (const char* wrong :
       {"ab\xFF", "ab\xC3", "ab\xC0\x80", "ab\xED\xA0\x80", "ab\xF4\x90\x80\x80", "ab\xE2\x82", "ab\x80"})
    CHECK_THROWS_WITH_AS(tokenizer.encode(wrong), "the text is not UTF-8 at byte 2", Error);
}

TEST_CASE("UTF-8 goes both ways at the borders of its lengths") {
  for (const char32_t character :
       {0x00U, 0x7FU, 0x80U, 0x7FFU, 0x800U, 0xD7FFU, 0xE000U, 0xFFFFU, 0x10000U, 0x10FFFFU}) {
    std::string text;
    append_character(text, character);
    std::size_t at = 0;
    CHECK(next_character(text, at) == character);
    CHECK(at == text.size());
  }
}

TEST_CASE("a tokenizer is saved and loaded") {
  for (const auto unknown : {CharacterTokenizer::Unknown::error, CharacterTokenizer::Unknown::token}) {
    const CharacterTokenizer tokenizer("x = \"é\"\n\t\\", unknown);
    const fs::path path = written("tokenizer.json", tokenizer.to_json());
    const auto loaded = load_tokenizer(path);
    CHECK(loaded->size() == tokenizer.size());
    CHECK(loaded->encode("\té\\") == tokenizer.encode("\té\\"));
    CHECK(loaded->to_json() == tokenizer.to_json());
    fs::remove(path);
  }
}

TEST_CASE("files that are no tokenizers are refused by name") {
  for (const char* wrong : {"", "{", "[]", R"({"kind": "character"})", R"({"kind": "word", "unknown": "error"})",
                            R"({"kind": "character", "unknown": "perhaps", "characters": "ab"})"}) {
    const fs::path path = written("wrong.json", wrong);
    CHECK_THROWS_WITH_AS(load_tokenizer(path), doctest::Contains(path.c_str()), FileError);
    fs::remove(path);
  }
  CHECK_THROWS_WITH_AS(read_text("/nonexistent/file"), "cannot read /nonexistent/file: No such file or directory",
                       FileError);
  CHECK_THROWS_WITH_AS(read_text("/tmp"), "cannot read /tmp: Is a directory", FileError);
  const fs::path empty = written("empty.txt", "");
  CHECK(read_text(empty).empty());
  fs::remove(empty);
}
