#include "data/texts/texts.hpp"
#include "data/tokenizers/unicode.hpp"
#include "data/tokenizers/utf8.hpp"

namespace xtape {

namespace {

/// Replaces every occurrence in a single pass, in linear time.
std::string replaced(const std::string& text, const std::string& what, const std::string& by) {
  std::string result;
  std::size_t from = 0;
  for (std::size_t at; (at = text.find(what, from)) != std::string::npos; from = at + what.size())
    result.append(text, from, at - from).append(by);
  return result.append(text, from, std::string::npos);
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_stop(char c) {
  return c == '.' || c == ',';
}
/// Returns whether the character is ASCII punctuation that is always a separate word: all ASCII punctuation except ' ,
/// - and the full stop.
bool is_mark(char c) {
  return (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') || c == '/' || (c >= ':' && c <= '@') ||
         (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

/// Finds every pair of adjacent bytes that `is_pair` accepts, from left to right and without overlap. Replaces each
/// pair by `before`, first byte, space, second byte, `after`. Bytes are sufficient, because the predicates test only
/// for ASCII characters.
template <class IsPair>
std::string space_pairs(const std::string& text, const IsPair& is_pair, const char* before, const char* after) {
  std::string spaced;
  std::size_t at = 0;
  while (at < text.size()) {
    if (at + 1 < text.size() && is_pair(text[at], text[at + 1])) {
      spaced.append(before).append(1, text[at]).append(" ").append(1, text[at + 1]).append(after);
      at += 2;
    } else {
      spaced += text[at++];
    }
  }
  return spaced;
}

}  // namespace

std::vector<std::string> words_13a(const std::string& line) {
  check_utf8(line);
  std::string text = replaced(line, "<skipped>", "");
  text = replaced(text, "&quot;", "\"");
  text = replaced(text, "&amp;", "&");
  text = replaced(text, "&lt;", "<");
  text = replaced(text, "&gt;", ">");
  std::string spaced = " ";
  for (const char c : text) spaced += is_mark(c) ? std::string{' ', c, ' '} : std::string{c};
  spaced += ' ';
  // Does not separate full stops and commas within numbers. Each rule applies to the result of the rule before it.
  spaced = space_pairs(
      spaced, [](char a, char b) { return !is_digit(a) && is_stop(b); }, "", " ");
  spaced = space_pairs(
      spaced, [](char a, char b) { return is_stop(a) && !is_digit(b); }, " ", "");
  spaced = space_pairs(
      spaced, [](char a, char b) { return is_digit(a) && b == '-'; }, "", " ");
  return words_in(spaced);
}

}  // namespace xtape
