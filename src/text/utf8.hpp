/// UTF-8, decoded strictly, and UTF-8 that comes in pieces.
#pragma once

#include <string>
#include <string_view>

#include "characters.hpp"

namespace xtape {

/// U+FFFD, which stands for what is no character, or cannot be shown.
constexpr char32_t replacement_character = 0xFFFD;
constexpr std::string_view replacement_text = "\uFFFD";

/// The character at byte `at`, which moves behind it. Throws Error, with the byte's place, where the text is not UTF-8.
char32_t next_character(const std::string& text, std::size_t& at);

/// Throws as next_character does where not all of the text is UTF-8.
void check_utf8(const std::string& text);

/// Appends the character as UTF-8.
void append_character(std::string& text, char32_t character);

/// For messages: "'é' (U+00E9)"; control characters by number only.
std::string describe_character(char32_t character);

/// Bytes that come in pieces, as a model's tokens give them, given on as whole characters. What is not UTF-8 becomes
/// U+FFFD: one for each beginning of a character that did not go on, and one for each byte that begins none (the
/// substitution that Unicode recommends, section 3.9 of the standard).
class Utf8Stream {
 public:
  /// The characters that are complete with these bytes; the beginning of one more is held back.
  std::string feed(const std::string& bytes);
  /// Ends the text: U+FFFD where a character was held back, otherwise nothing. Another text may follow.
  std::string finish();

 private:
  std::string begun_;      // the beginning of a character
  int missing_ = 0;        // how many bytes it lacks
  unsigned char low_ = 0;  // the next of them lies between these
  unsigned char high_ = 0;
};

}  // namespace xtape
