/// Properties and normal forms of Unicode characters, from utf8proc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace xtape {

/// The normal forms of Unicode Standard Annex 15.
struct NormalForm {
  bool compatible;  ///< Whether compatibility characters are replaced, as in NFKC and NFKD.
  bool composed;    ///< Whether characters are composed, as in NFC and NFKC.
};

/// Returns `text`, which must be UTF-8, in a normal form. Takes O(n log n) time for any text, also for long runs of
/// accents.
std::string normal_form(const std::string& text, NormalForm form);

bool is_mark(char32_t character);             ///< General category M.
bool is_nonspacing_mark(char32_t character);  ///< General category Mn.
/// General categories Cc, Cf, Cs and Co: everything except letters, marks, numbers, punctuation, symbols and
/// separators.
bool is_other(char32_t character);
/// Returns whether the character can be part of a word: a letter, mark, decimal digit, connector or joiner.
bool is_word_character(char32_t character);
/// The property White_Space of Unicode.
bool is_white_space(char32_t character);
/// Appends the lower case of a single character as UTF-8.
void append_lower_case(std::string& text, char32_t character);
/// Returns the byte after the grapheme cluster (what users see as one character) that begins at byte `at` of a UTF-8
/// text.
std::size_t grapheme_end(std::string_view text, std::size_t at);

}  // namespace xtape
