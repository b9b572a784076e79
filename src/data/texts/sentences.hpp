/// Words with labels, one word per line.
#pragma once

#include <string>
#include <vector>

#include "xtape/text.hpp"

namespace xtape {

inline bool is_blank(const std::string& line) { return line.find_first_not_of(" \t\r") == std::string::npos; }

/// Returns whether a line separates sentences. Such a line is blank, or begins a document in the data of CoNLL-2003.
bool ends_sentence(const std::string& line, char delimiter);

/// Like fields_of, but the delimiter ' ' stands for any number of spaces and tabs.
std::vector<std::string> fields_of_word(const std::string& line, char delimiter, std::size_t most);

/// Throws Error if the text is not exactly one word in the sense of words_in.
void check_word(const std::string& text);

/// Returns the number of tokens that source_of puts before the first word.
inline std::size_t tokens_before(const Tokenizer& tokenizer) {
  return tokenizer.start() >= 0 || tokenizer.end() < 0 ? 1 : 0;
}

/// Throws Error if the tokenizer does not give exactly one token for each word. `tokens` is the number of tokens of a
/// sentence with `words` words, and includes the tokens that source_of adds.
void check_one_token_a_word(const Tokenizer& tokenizer, std::size_t tokens, std::size_t words);

}  // namespace xtape
