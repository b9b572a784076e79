/// What lies in UTF-8 text: white space, words, letters of two cases.
#pragma once

#include <string>
#include <vector>

namespace xtape {

/// Unicode's white space, and the four separators of ASCII.
bool is_space(char32_t character);

/// The stretches of `text` between white space. Throws Error where it is not UTF-8.
std::vector<std::string> words_in(const std::string& text);

/// `text` in lower case, by Unicode's rules that hold in every language. Throws Error where it is not UTF-8.
std::string lower_cased(const std::string& text);

}  // namespace xtape
