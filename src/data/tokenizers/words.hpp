/// White space, words and lower case in UTF-8 text.
#pragma once

#include <string>
#include <vector>

namespace xtape {

/// Returns whether a character is Unicode white space or one of the four ASCII separators (U+001C to U+001F).
bool is_space(char32_t character);

/// Splits `text` at white space. Throws Error if it is not UTF-8.
std::vector<std::string> words_in(const std::string& text);

/// Returns `text` in lower case, by the language-independent rules of Unicode. Throws Error if `text` is not UTF-8 or
/// the locale C.UTF-8 is missing.
std::string lower_cased(const std::string& text);

}  // namespace xtape
