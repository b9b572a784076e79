#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "data/tokenizers/utf8.hpp"

using namespace xtape;

namespace {

using Strings = std::vector<std::string>;

/// The output after each piece, and finally at the end.
Strings streamed(const Strings& pieces) {
  Utf8Stream stream;
  Strings out;
  for (const std::string& piece : pieces) out.push_back(stream.feed(piece));
  out.push_back(stream.finish());
  return out;
}

std::string at_once(const std::string& bytes) {
  Utf8Stream stream;
  std::string out = stream.feed(bytes);
  return out + stream.finish();
}

std::string byte_by_byte(const std::string& bytes) {
  Utf8Stream stream;
  std::string out;
  for (const char byte : bytes) out += stream.feed(std::string(1, byte));
  return out + stream.finish();
}

}  // namespace

TEST_CASE("a UTF-8 stream returns characters when they are complete") {
  CHECK(streamed({"a\xC3", "\xA9z"}) == Strings{"a", "éz", ""});
  CHECK(streamed({"\xF0", "\x9F", "\x98", "\x80", "!"}) == Strings{"", "", "", "😀", "!", ""});
  CHECK(streamed({"", "\xE2\x82", "", "\xAC"}) == Strings{"", "", "", "€", ""});
  CHECK(streamed({"ab", "c"}) == Strings{"ab", "c", ""});
}

TEST_CASE("a UTF-8 stream preserves every character, also zero and the limits of the lengths") {
  std::string text(1, '\0');
  for (const char32_t character :
       {0x7FU, 0x80U, 0x7FFU, 0x800U, 0xD7FFU, 0xE000U, 0xFFFDU, 0xFFFFU, 0x10000U, 0x3FFFFU, 0x40000U, 0x10FFFFU})
    append_character(text, character);
  CHECK(at_once(text) == text);
  CHECK(byte_by_byte(text) == text);
}

TEST_CASE("invalid UTF-8 becomes U+FFFD in a stream, one for each incomplete character") {
  const std::pair<std::string, std::string> cases[] = {
      {"\xFF", "\uFFFD"},
      {"a\x80z", "a\uFFFDz"},
      {"\xC3", "\uFFFD"},
      {"\xC3z", "\uFFFDz"},
      {"\xE2\x82z", "\uFFFDz"},
      {"\xE2\x82\xC3\xA9", "\uFFFDé"},
      {"\xF0\x9F\x98", "\uFFFD"},
      {"\xF0\x9F\x98\xF0\x9F\x98\x80", "\uFFFD😀"},
      {"\xC0\x80", "\uFFFD\uFFFD"},                      // overlong
      {"\xE0\x80\x80", "\uFFFD\uFFFD\uFFFD"},            // overlong
      {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},            // surrogate
      {"\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},  // above U+10FFFF
      {"\xF5\x80", "\uFFFD\uFFFD"},
  };
  for (const auto& each : cases) {
    const auto& bytes = each.first;
    const auto& expected = each.second;
    CAPTURE(expected);
    CHECK(at_once(bytes) == expected);
    CHECK(byte_by_byte(bytes) == expected);
  }
}

TEST_CASE("a UTF-8 stream can be used again after finish") {
  Utf8Stream stream;
  CHECK(stream.feed("\xE2\x82").empty());
  CHECK(stream.finish() == "\uFFFD");
  CHECK(stream.feed("\xAC"
                    "a") ==
        "\uFFFD"
        "a");
  CHECK(stream.finish().empty());
}
