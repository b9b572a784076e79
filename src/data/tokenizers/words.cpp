#include <clocale>
#include <cwctype>

#include "data/tokenizers/unicode.hpp"
#include "data/tokenizers/utf8.hpp"
#include "xtape/error.hpp"

namespace xtape {

namespace {

/// Returns a locale with Unicode's character tables. It is independent of the process's locale.
locale_t unicode() {
  static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (locale == nullptr) throw Error("lower-casing needs the system's locale C.UTF-8, which is not installed");
  return locale;
}

bool is_letter(char32_t character) {
  return iswalpha_l(static_cast<wint_t>(character), unicode()) != 0;
}

/// Returns whether the character at byte `at` is a letter.
bool letter_follows(const std::string& text, std::size_t at) {
  return at < text.size() && is_letter(next_character(text, at));
}

}  // namespace

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

std::vector<std::string> words_in(const std::string& text) {
  std::vector<std::string> words;
  bool inside = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    if (is_space(next_character(text, at))) {
      inside = false;
    } else {
      if (!inside) words.emplace_back();
      inside = true;
      words.back().append(text, begin, at - begin);
    }
  }
  return words;
}

std::string lower_cased(const std::string& text) {
  constexpr char32_t capital_sigma = 0x3A3, sigma = 0x3C3, final_sigma = 0x3C2;
  constexpr char32_t capital_i_with_dot = 0x130, dot_above = 0x307;
  std::string lower;
  lower.reserve(text.size());
  bool after_letter = false;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t character = next_character(text, at);
    if (character == capital_sigma) {
      append_character(lower, after_letter && !letter_follows(text, at) ? final_sigma : sigma);
    } else if (character == capital_i_with_dot) {  // the only character whose lower case has two characters
      append_character(lower, U'i');
      append_character(lower, dot_above);
    } else {
      append_character(lower, static_cast<char32_t>(towlower_l(static_cast<wint_t>(character), unicode())));
    }
    after_letter = is_letter(character);
  }
  return lower;
}

}  // namespace xtape
