/// UTF-8, decoded strictly.
#pragma once

#include <string>

namespace xtape {

/// The character at byte `at`, which moves behind it. Throws Error, with the byte's place, where the text is not UTF-8.
char32_t next_character(const std::string& text, std::size_t& at);

/// Throws as next_character does where not all of the text is UTF-8.
void check_utf8(const std::string& text);

/// Appends the character as UTF-8.
void append_character(std::string& text, char32_t character);

/// For messages: "'é' (U+00E9)"; control characters by number only.
std::string describe_character(char32_t character);

}  // namespace xtape
