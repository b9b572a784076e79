#include <algorithm>

#include "base/messages/wording.hpp"

namespace xtape {

namespace {
/// Returns whether the byte at `at` is a continuation byte of a UTF-8 character.
bool continues(std::string_view text, std::size_t at) {
  return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U;
}
}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = shown_length(text, at);
    const char c = text[at];
    if (length > 0)
      shown += text.substr(at, length);
    else
      shown += c == '\t' || c == '\n' || c == '\r' ? " " : "\xEF\xBF\xBD";
    at += std::max<std::size_t>(length, 1);
  }
  return shown;
}

std::string with_caret(std::string_view text, std::size_t column) {
  constexpr std::size_t around = 80;
  column = std::min(column, text.size());
  std::size_t first = column > around ? column - around : 0;
  std::size_t last = std::min(text.size(), column + around);
  while (first > 0 && first < column && continues(text, first)) ++first;
  while (last < text.size() && continues(text, last)) ++last;
  std::string spaces(first > 0 ? 1 : 0, ' ');
  for (const char c : printable(text.substr(first, column - first)))
    if ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U) spaces += ' ';
  const std::string before = first > 0 ? "…" : "", after = last < text.size() ? "…" : "";
  return "    " + before + printable(text.substr(first, last - first)) + after + "\n    " + spaces + "^";
}

}  // namespace xtape
