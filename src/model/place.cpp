#include "place.hpp"

#include "caret.hpp"

namespace xtape::model {

Place place_of(const JsonNode& node) {
  return {node.file(), node.owner(), node.source()->line_at(node.begin()), node.source(), node.begin()};
}

std::string to_string(const Place& place) {
  std::string text = place.file;
  if (!place.owner.empty()) text += (text.empty() ? "" : ", ") + place.owner;
  if (place.line > 0) text += (text.empty() ? "line " : ", line ") + std::to_string(place.line);
  return text;
}

void fail(const Place& place, const std::string& message) {
  throw DefinitionError(to_string(place) + ": " + message +
                        (place.source ? "\n" + place.source->caret_at(place.begin) : ""));
}

void fail(const Place& place, const std::string& text, std::size_t column, const std::string& message) {
  throw DefinitionError(to_string(place) + ": " + message + "\n" + with_caret(text, column));
}

}  // namespace xtape::model
