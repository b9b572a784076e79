/// Characters: properties, words, and symbols of bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace xtape {

// Properties and normal forms of Unicode characters, from utf8proc.

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

// White space, words and lower case in UTF-8 text.

/// Returns whether a character is Unicode white space or one of the four ASCII separators (U+001C to U+001F).
bool is_space(char32_t character);

/// Splits `text` at white space. Throws Error if it is not UTF-8.
std::vector<std::string> words_in(const std::string& text);

/// Returns `text` in lower case, by the language-independent rules of Unicode. Throws Error if `text` is not UTF-8 or
/// the locale C.UTF-8 is missing.
std::string lower_cased(const std::string& text);

// The characters that represent bytes in GPT-2's files.

/// Returns the symbol of a byte in UTF-8. The symbol of a printable Latin-1 character is the character itself. The
/// other bytes have the symbols U+0100 and following, in order ("Ġ" is the space).
const std::string& symbol_of(std::uint8_t byte);

/// Returns the bytes that `symbols` represents, or `symbols` itself if it contains a character that is not a symbol.
std::string bytes_of_symbols(const std::string& symbols);

}  // namespace xtape
