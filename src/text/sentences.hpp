/// Words with labels, a word a line.
#pragma once

#include <string>
#include <vector>

#include "xtape/text.hpp"

namespace xtape {

inline bool is_blank(const std::string& line) { return line.find_first_not_of(" \t\r") == std::string::npos; }

/// Whether a line lies between sentences: a blank one, or one that begins a document in the data of CoNLL-2003.
bool ends_sentence(const std::string& line, char delimiter);

/// As fields_of; the delimiter ' ' stands for any number of spaces and tabs.
std::vector<std::string> fields_of_word(const std::string& line, char delimiter, std::size_t most);

/// Throws Error unless the text is one word, as words_in finds them.
void check_word(const std::string& text);

/// The number of tokens that source_of puts before the first word.
inline std::size_t tokens_before(const Tokenizer& tokenizer) {
  return tokenizer.start() >= 0 || tokenizer.end() < 0 ? 1 : 0;
}

/// Throws Error unless the tokens of `words` words are one for each, beside those that source_of adds.
void check_one_token_a_word(const Tokenizer& tokenizer, std::size_t tokens, std::size_t words);

}  // namespace xtape
