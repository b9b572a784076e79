#include "data/tokenizers/utf8.hpp"

#include <cstdio>

#include "xtape/error.hpp"

namespace xtape {

char32_t next_character(const std::string& text, std::size_t& at) {
  const std::size_t length = character_length(text, at);
  if (length == 0) throw Error("the text is not UTF-8 at byte " + std::to_string(at));
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  char32_t character = length == 1 ? byte(at) : byte(at) & (0x7F >> length);
  for (std::size_t i = 1; i < length; ++i) character = character << 6 | (byte(at + i) & 0x3F);
  at += length;
  return character;
}

void check_utf8(const std::string& text) {
  for (std::size_t at = 0; at < text.size();) next_character(text, at);
}

std::string error_not_utf8(const std::string& path, const std::string& text) {
  std::size_t line = 1, begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_length(text, at);
    if (length == 0)
      return path + ", line " + std::to_string(line) + ": the text is not UTF-8 at byte " + std::to_string(at - begin);
    if (text[at] == '\n') ++line, begin = at + 1;
    at += length;
  }
  return "";
}

std::vector<std::string> read_utf8_lines(const std::string& path, const ReadOptions& options) {
  std::vector<std::string> lines = read_lines(path, options);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    try {
      check_utf8(lines[i]);
    } catch (const Error& error) {
      throw FileError(path + ", line " + std::to_string(i + 1) + ": " + error.what());
    }
  }
  return lines;
}

void drop_byte_order_mark(std::string& text, const std::string& path) {
  if (const char* other = other_encoding(text))
    throw FileError("cannot read " + path + ": it is " + other +
                    ", as its byte-order mark says: convert it to UTF-8 (iconv -f " + other + " -t UTF-8)");
  if (text.starts_with(byte_order_mark)) text.erase(0, byte_order_mark.size());
}

void append_character(std::string& text, char32_t character) {
  const auto put = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (character < 0x80) {
    put(character);
  } else if (character < 0x800) {
    put(0xC0 | character >> 6);
    put(0x80 | (character & 0x3F));
  } else if (character < 0x10000) {
    put(0xE0 | character >> 12);
    put(0x80 | (character >> 6 & 0x3F));
    put(0x80 | (character & 0x3F));
  } else {
    put(0xF0 | character >> 18);
    put(0x80 | (character >> 12 & 0x3F));
    put(0x80 | (character >> 6 & 0x3F));
    put(0x80 | (character & 0x3F));
  }
}

std::string describe_character(char32_t character) {
  char number[16];
  std::snprintf(number, sizeof number, "U+%04X", static_cast<unsigned>(character));
  if (character < 0x20 || (character >= 0x7F && character < 0xA0)) return number;
  std::string text = "'";
  append_character(text, character);
  return text + "' (" + number + ")";
}

}  // namespace xtape
