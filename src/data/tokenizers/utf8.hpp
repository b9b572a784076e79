/// Decodes UTF-8 strictly, as a whole or as a stream.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/messages/wording.hpp"
#include "xtape/text.hpp"

namespace xtape {

/// U+FFFD. It replaces bytes that do not form a character, and characters that cannot be shown.
constexpr char32_t replacement_character = 0xFFFD;
constexpr std::string_view replacement_text = "\uFFFD";

/// Returns the character at byte `at` and advances `at` past it. Throws Error, with the byte's index, if the text is
/// not UTF-8 there.
char32_t next_character(const std::string& text, std::size_t& at);

/// Throws the Error of next_character if the text is not UTF-8.
void check_utf8(const std::string& text);

/// Returns an error that names the first line of a file's text that is not UTF-8, or "" if the text is UTF-8.
std::string error_not_utf8(const std::string& path, const std::string& text);
/// Like read_lines. Throws FileError with the line if a line is not UTF-8.
std::vector<std::string> read_utf8_lines(const std::string& path, const ReadOptions& options = {});

/// Removes a byte-order mark from the beginning of a file's text. Throws FileError if the mark is that of UTF-16 or
/// UTF-32. `path` names the file.
void drop_byte_order_mark(std::string& text, const std::string& path);

/// Appends the character as UTF-8.
void append_character(std::string& text, char32_t character);

/// Describes a character in messages: "'é' (U+00E9)". Describes control characters only by their number.
std::string describe_character(char32_t character);

/// Converts a stream of bytes, such as the bytes of a model's tokens, to whole characters. Bytes that are not UTF-8
/// become U+FFFD: one for each incomplete character, and one for each byte that cannot begin a character (the
/// substitution recommended in section 3.9 of the Unicode standard).
class Utf8Stream {
 public:
  /// Returns the characters that these bytes complete. Holds back an incomplete character at the end.
  std::string feed(const std::string& bytes);
  /// Ends the text. Returns U+FFFD if a character was held back, otherwise "". Another text may follow.
  std::string finish();

 private:
  std::string begun_;      // the bytes of an incomplete character so far
  int missing_ = 0;        // the number of missing bytes
  unsigned char low_ = 0;  // the range of the next byte, inclusive
  unsigned char high_ = 0;
};

// Characters: properties, words, and symbols of bytes.

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
