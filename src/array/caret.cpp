#include "caret.hpp"

#include <algorithm>

namespace xtape {

namespace {
unsigned byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

/// Whether the byte goes on with a character of UTF-8.
bool continues(std::string_view text, std::size_t at) {
  return at < text.size() && (byte_at(text, at) & 0xC0U) == 0x80U;
}

/// The bytes of the character at `at`; 0 where it is none that can be shown.
std::size_t character(std::string_view text, std::size_t at) {
  const unsigned lead = byte_at(text, at);
  if (lead < 0x80) return lead < 0x20 || lead == 0x7F ? 0 : 1;
  const std::size_t length = lead < 0xC2 || lead > 0xF4 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  for (std::size_t i = 1; i < length; ++i)
    if (!continues(text, at + i)) return 0;
  const unsigned second = length > 1 ? byte_at(text, at + 1) : 0;
  const bool control = lead == 0xC2 && second < 0xA0;
  const bool out_of_range = (lead == 0xE0 && second < 0xA0) || (lead == 0xED && second >= 0xA0) ||
                            (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second >= 0x90);
  return control || out_of_range ? 0 : length;
}
}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character(text, at);
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
  const std::string before = first > 0 ? "…" : "", behind = last < text.size() ? "…" : "";
  return "    " + before + printable(text.substr(first, last - first)) + behind + "\n    " + spaces + "^";
}

}  // namespace xtape
