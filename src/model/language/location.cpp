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

namespace {
[[noreturn]] void fail_with(const Location& location, const std::string& message, const std::string& caret) {
  DefinitionError error(to_string(location) + ": " + message + caret);
  error.set_place(location.file, location.line);
  throw error;
}
}  // namespace

void fail(const Location& location, const std::string& message) {
  fail_with(location, message, location.source ? "\n" + location.source->caret_at(location.begin) : "");
}

void fail(const Location& location, const std::string& text, std::size_t column, const std::string& message) {
  fail_with(location, message, "\n" + with_caret(text, column));
}

}  // namespace xtape::model
