/// Properties and normal forms of Unicode characters, by utf8proc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace xtape {

/// The normal forms of Unicode Standard Annex 15.
struct NormalForm {
  bool compatible;  ///< NFKC, NFKD: compatibility characters are replaced.
  bool composed;    ///< NFC, NFKC
};

/// `text`, which must be UTF-8, in a normal form. O(n log n) for any text, also for long runs of accents.
std::string normal_form(const std::string& text, NormalForm form);

bool is_mark(char32_t character);             ///< General category M.
bool is_nonspacing_mark(char32_t character);  ///< General category Mn.
/// General category Cc, Cf, Cs or Co: other than letters, marks, numbers, punctuation, symbols and separators.
bool is_other(char32_t character);
/// A character of words: letters, marks, decimal digits, connectors, joiners.
bool is_word_character(char32_t character);
/// Unicode's property White_Space.
bool is_white_space(char32_t character);
/// The lower case of a character by itself, as UTF-8.
void append_lower_case(std::string& text, char32_t character);
/// The byte after the grapheme cluster (what users see as one character) of UTF-8 that begins at byte `at`.
std::size_t grapheme_end(std::string_view text, std::size_t at);

}  // namespace xtape
