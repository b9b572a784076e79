#include "data/tokenizers/utf8.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <unordered_map>
#include <utility>
#include <vector>

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

namespace {

/// The continuation bytes that a first byte requires: their number, and the range of the first of them. The range
/// excludes overlong forms, surrogates and numbers above U+10FFFF. `count` is -1 if the byte cannot begin a character.
struct Rest {
  int count;
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
};

Rest rest_of(unsigned char lead) {
  if (lead < 0x80) return {0};
  if (lead < 0xC2 || lead > 0xF4) return {-1};
  if (lead < 0xE0) return {1};
  if (lead < 0xF0)
    return {2, static_cast<unsigned char>(lead == 0xE0 ? 0xA0 : 0x80),
            static_cast<unsigned char>(lead == 0xED ? 0x9F : 0xBF)};
  return {3, static_cast<unsigned char>(lead == 0xF0 ? 0x90 : 0x80),
          static_cast<unsigned char>(lead == 0xF4 ? 0x8F : 0xBF)};
}

}  // namespace

std::string Utf8Stream::feed(const std::string& bytes) {
  std::string whole;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    if (!begun_.empty()) {
      if (value >= low_ && value <= high_) {
        begun_ += byte;
        low_ = 0x80;
        high_ = 0xBF;
        if (--missing_ == 0) whole += std::exchange(begun_, "");
        continue;
      }
      whole += finish();
    }
    const Rest rest = rest_of(value);
    if (rest.count == 0) whole += byte;
    if (rest.count < 0) whole += replacement_text;
    if (rest.count > 0) {
      begun_ = byte;
      missing_ = rest.count;
      low_ = rest.low;
      high_ = rest.high;
    }
  }
  return whole;
}

std::string Utf8Stream::finish() {
  const bool cut = !begun_.empty();
  begun_.clear();
  return std::string(cut ? replacement_text : "");
}

namespace {
const utf8proc_property_t& property_of(char32_t character) {
  return *utf8proc_get_property(static_cast<utf8proc_int32_t>(character));
}

void append_decomposed(std::vector<utf8proc_int32_t>& characters, char32_t character, int options) {
  utf8proc_int32_t parts[32];  // the longest decomposition has 18 characters
  int boundary = UTF8PROC_BOUNDCLASS_START;
  const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(character), parts, 32,
                                             static_cast<utf8proc_option_t>(options), &boundary);
  if (count < 0 || count > 32) throw Error("utf8proc does not know " + describe_character(character));
  characters.insert(characters.end(), parts, parts + count);
}

/// Sorts each run of combining characters by class. (utf8proc_decompose does this in quadratic time.)
void reorder(std::vector<utf8proc_int32_t>& characters) {
  const auto order = [](utf8proc_int32_t each) { return property_of(static_cast<char32_t>(each)).combining_class; };
  for (auto at = characters.begin(); at != characters.end();) {
    const auto end = std::find_if(at, characters.end(), [&](auto each) { return order(each) == 0; });
    std::stable_sort(at, end, [&](auto left, auto right) { return order(left) < order(right); });
    at = end == characters.end() ? end : end + 1;
  }
}
}  // namespace

std::string normal_form(const std::string& text, NormalForm form) {
  if (std::ranges::all_of(text, [](char byte) { return static_cast<unsigned char>(byte) < 0x80; })) return text;
  const int options = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (form.compatible ? UTF8PROC_COMPAT : 0);
  std::vector<utf8proc_int32_t> characters;
  characters.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) append_decomposed(characters, next_character(text, at), options);
  reorder(characters);
  if (form.composed && !characters.empty()) {
    const auto count = utf8proc_normalize_utf32(characters.data(), static_cast<utf8proc_ssize_t>(characters.size()),
                                                static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    if (count < 0) throw Error(std::string("utf8proc: ") + utf8proc_errmsg(count));
    characters.resize(static_cast<std::size_t>(count));
  }
  std::string normal;
  normal.reserve(text.size());
  for (const utf8proc_int32_t each : characters) append_character(normal, static_cast<char32_t>(each));
  return normal;
}

bool is_mark(char32_t character) {
  const auto category = property_of(character).category;
  return category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
}

bool is_nonspacing_mark(char32_t character) {
  return property_of(character).category == UTF8PROC_CATEGORY_MN;
}

bool is_other(char32_t character) {
  return property_of(character).category >= UTF8PROC_CATEGORY_CC;
}

bool is_word_character(char32_t character) {
  const auto category = property_of(character).category;
  const bool enclosed_letter = (character >= 0x24B6 && character <= 0x24E9) ||
                               (character >= 0x1F130 && character <= 0x1F189 && category == UTF8PROC_CATEGORY_SO);
  return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NL) || category == UTF8PROC_CATEGORY_PC ||
         character == 0x200C || character == 0x200D || enclosed_letter;
}

bool is_white_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

void append_lower_case(std::string& text, char32_t character) {
  constexpr char32_t capital_i_with_dot = 0x130;  // the only character whose lower case has two characters
  if (character == capital_i_with_dot) {
    text += "i\u0307";
  } else if (character < 0x80) {
    text += static_cast<char>(character >= 'A' && character <= 'Z' ? character + 32 : character);
  } else {
    append_character(text, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(character))));
  }
}

std::size_t grapheme_end(std::string_view text, std::size_t at) {
  utf8proc_int32_t state = 0, before = -1;
  while (at < text.size()) {
    utf8proc_int32_t character = 0;
    const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
                                         static_cast<utf8proc_ssize_t>(text.size() - at), &character);
    if (length <= 0) throw Error("the text is not UTF-8 at byte " + std::to_string(at));
    if (before >= 0 && utf8proc_grapheme_break_stateful(before, character, &state)) break;
    before = character;
    at += static_cast<std::size_t>(length);
  }
  return at;
}

namespace {

struct Symbols {
  std::array<std::string, 256> of_byte;
  std::unordered_map<char32_t, char> byte_of;

  Symbols() {
    char32_t further = 0x100;
    for (char32_t byte = 0; byte < 256; ++byte) {
      const bool printed = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
      const char32_t symbol = printed ? byte : further++;
      append_character(of_byte[byte], symbol);
      byte_of.emplace(symbol, static_cast<char>(byte));
    }
  }
};

const Symbols& symbols_of_all() {
  static const Symbols symbols;
  return symbols;
}

}  // namespace

const std::string& symbol_of(std::uint8_t byte) {
  return symbols_of_all().of_byte[byte];
}

std::string bytes_of_symbols(const std::string& symbols) {
  const auto& byte_of = symbols_of_all().byte_of;
  std::string bytes;
  for (std::size_t at = 0; at < symbols.size();) {
    const auto found = byte_of.find(next_character(symbols, at));
    if (found == byte_of.end()) return symbols;
    bytes += found->second;
  }
  return bytes;
}

}  // namespace xtape
