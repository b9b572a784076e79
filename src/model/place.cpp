#include "place.hpp"

namespace xtape::model {

std::string to_string(const Place& place) {
  std::string text = place.file;
  if (!place.owner.empty()) text += (text.empty() ? "" : ", ") + place.owner;
  if (place.line > 0) text += (text.empty() ? "line " : ", line ") + std::to_string(place.line);
  return text;
}

void fail(const Place& place, const std::string& message) {
  throw DefinitionError(to_string(place) + ": " + message);
}

void fail(const Place& place, const std::string& text, std::size_t column, const std::string& message) {
  throw DefinitionError(to_string(place) + ": " + message + "\n" + with_caret(text, column));
}

std::string with_caret(const std::string& text, std::size_t column) {
  std::string shown, spaces;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    shown += c == '\n' || c == '\t' || c == '\r' ? ' ' : c;  // one column each, so that the caret stands right
    const bool starts_character = (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    if (i < column && starts_character) spaces += ' ';
  }
  return "    " + shown + "\n    " + spaces + "^";
}

}  // namespace xtape::model
