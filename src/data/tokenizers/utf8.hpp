/// Decodes UTF-8 strictly, as a whole or as a stream.
#pragma once

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

}  // namespace xtape
