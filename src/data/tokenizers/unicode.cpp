#include "data/tokenizers/unicode.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "data/tokenizers/utf8.hpp"
#include "xtape/error.hpp"

namespace xtape {

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

}  // namespace xtape
