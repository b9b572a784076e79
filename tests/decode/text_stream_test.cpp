#include <doctest/doctest.h>

#include "data/tokenizers/utf8.hpp"
#include "xtape/decode.hpp"

using namespace xtape;

namespace {
/// Every byte a token, and an end that is no text.
class Bytes : public Tokenizer {
 public:
  std::int64_t size() const override { return 257; }
  Tokens encode(const std::string& text) const override {
    Tokens tokens;
    for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
    return tokens;
  }
  std::string decode(const Tokens& tokens) const override {
    std::string text;
    for (const std::int32_t token : tokens)
      if (token != end()) text += static_cast<char>(token);
    return text;
  }
  std::int32_t end() const override { return 256; }
  std::string to_json() const override { return "{}"; }
};

/// What is given after each byte, bars between, and what is given at the end.
std::string pieces(const std::string& text, const std::vector<std::string>& stops) {
  const Bytes tokenizer;
  TextStream stream(tokenizer, 'x', stops);
  std::string all;
  for (const std::int32_t token : tokenizer.encode(text)) all += stream.add(token) + "|";
  return all + stream.finish() + (stream.stopped() ? "." : "");
}
}  // namespace

/// Bytes as sentencepiece decodes those of its byte fallback: what is no character gives U+FFFD for every byte.
class FallbackBytes : public Bytes {
 public:
  std::string decode(const Tokens& tokens) const override {
    Utf8Stream characters;
    const std::string text = characters.feed(Bytes::decode(tokens));
    std::string rest = characters.finish();
    return text + rest;
  }
};

TEST_CASE("characters whose bytes are tokens of their own come whole, whatever decode makes of a part") {
  const FallbackBytes tokenizer;
  const auto streamed = [&](const std::string& text) {
    TextStream stream(tokenizer, 'x');
    std::string all;
    for (const std::int32_t token : tokenizer.encode(text)) all += stream.add(token) + "|";
    return all + stream.finish();
  };
  CHECK(streamed("aé€b") == "a||é|||€|b|");
  CHECK(streamed("ab\xC3") == "a|b||\uFFFD");
  CHECK(streamed("\xC3 é!") == "|\uFFFD ||é|!|");
  CHECK(streamed("\u00e9\u00e9\u20ac\u20ac") == "|é||é|||€|||€|");
}

TEST_CASE("text comes in whole characters") {
  CHECK(pieces("ab", {}) == "a|b|");
  CHECK(pieces("aé€b", {}) == "a||é|||€|b|");
  CHECK(pieces("a\xE2\x82", {}) == "a|||\uFFFD");
  CHECK(pieces("\xE2\x82 b", {}) == "||\uFFFD |b|");
}

TEST_CASE("text ends before the first stop, whose beginning is held back until it is none") {
  CHECK(pieces("one. two", {"."}) == "o|n|e||||||.");
  CHECK(pieces("aabaabab", {"abab"}) == "|a|||aba||||.");
  CHECK(pieces("a END b", {" END "}) == "a|||||||.");
  CHECK(pieces("a ENb", {" END "}) == "a|||| ENb|");
  CHECK(pieces("a EN", {" END "}) == "a|||| EN");
  CHECK(pieces("abcd", {"bcx", "cd"}) == "a|||b|.");
  CHECK(pieces("aé!", {"é"}) == "a||||.");
  CHECK(pieces("stop", {"stop"}) == "||||.");
}

TEST_CASE("a token that is no text changes nothing, and words get the space that stands between them") {
  const Bytes bytes;
  TextStream stream(bytes, 'x');
  CHECK(stream.add(bytes.end()).empty());
  CHECK(stream.add('a') == "a");
  const WordTokenizer words(std::vector<std::string>{"the rain in spain"});
  const Tokens tokens = words.encode("the rain in");
  TextStream spoken(words, tokens[0], {"rain in"});
  CHECK(spoken.add(tokens[1]) == " ");
  CHECK(spoken.add(tokens[2]).empty());
  CHECK(spoken.stopped());
  CHECK(spoken.add(tokens[1]).empty());
  CHECK_THROWS_AS(TextStream(words, tokens[0], {"a", ""}), Error);
}
