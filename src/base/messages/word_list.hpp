/// Lists of words in one text, and words without regard to case.
#pragma once

#include <string>

namespace xtape {

/// Whether `word` is one of the `words`, which single spaces separate.
inline bool is_one_of(const std::string& words, const std::string& word) {
  return word.find(' ') == std::string::npos && (" " + words + " ").find(" " + word + " ") != std::string::npos;
}

/// Returns the text with its ASCII letters in lower case.
inline std::string with_ascii_in_lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return text;
}

}  // namespace xtape
