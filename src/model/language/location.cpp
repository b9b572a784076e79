#include "model/language/location.hpp"

#include "base/messages/wording.hpp"

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

OldForm::OldForm(const Location& where, const std::string& before, const std::string& after)
    : DefinitionError(to_string(where) + ": write " + after + " in place of " + before +
                      ": a string is an expression, in which blocks and initialisers are names; 'xtape check --fix "
                      "FILE' rewrites the file\n" +
                      where.source->caret_at(where.begin)),
      location(where),
      old(before),
      now(after) {
  set_place(where.file, where.line);
}

DefinitionError called_from(const DefinitionError& error, const Location& caller, const std::string& what) {
  const std::string from = "\n    from ", left_out = "\n    …";
  constexpr int most = 8;  // the number of innermost callers that are always named
  std::string text = error.what();
  int callers = 0;
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + 1)) ++callers;
  if (callers > most) {
    text.erase(text.rfind(from));
    if (text.compare(text.size() - left_out.size(), left_out.size(), left_out) != 0) text += left_out;
  }
  DefinitionError longer(text + from + to_string(caller) + ": " + printable(what));
  longer.set_place(error.file(), error.line());
  return longer;
}

}  // namespace xtape::model
