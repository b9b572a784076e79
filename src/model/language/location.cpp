#include "language/location.hpp"

#include "caret.hpp"

namespace xtape::model {

Location location_of(const JsonNode& node) {
  return {node.file(), node.owner(), node.source()->line_at(node.begin()), node.source(), node.begin()};
}

std::string to_string(const Location& location) {
  std::string text = location.file;
  if (!location.owner.empty()) text += (text.empty() ? "" : ", ") + location.owner;
  if (location.line > 0) text += (text.empty() ? "line " : ", line ") + std::to_string(location.line);
  return text;
}

void fail(const Location& location, const std::string& message) {
  throw DefinitionError(to_string(location) + ": " + message +
                        (location.source ? "\n" + location.source->caret_at(location.begin) : ""));
}

void fail(const Location& location, const std::string& text, std::size_t column, const std::string& message) {
  throw DefinitionError(to_string(location) + ": " + message + "\n" + with_caret(text, column));
}

}  // namespace xtape::model
