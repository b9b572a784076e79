/// Source locations in definitions, and errors that report them.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/json/json_text.hpp"
#include "xtape/error.hpp"

namespace xtape::model {

/// A source location.
struct Location {
  std::string file;   ///< The name that the user gave for the file.
  std::string owner;  ///< "block 'attention'", "function 'loss'", "hyper"; may be empty.
  int line = 0;       ///< The line in the file, from 1. 0 if the text is not from a file.
  std::shared_ptr<const JsonText> source = nullptr;  ///< The file's text; null if there is none.
  std::size_t begin = 0;                             ///< The byte offset in `source`.
};

Location location_of(const JsonNode& node);

/// "gpt2.json, block 'attention', line 24".
std::string to_string(const Location& location);

/// Throws a DefinitionError with the location and the message, followed by the line of the file with a caret.
[[noreturn]] void fail(const Location& location, const std::string& message);

/// Throws a DefinitionError with the location and the message, followed by `text` with a caret under byte `column`.
[[noreturn]] void fail(const Location& location, const std::string& text, std::size_t column,
                       const std::string& message);

/// A string in the form of earlier versions: `old`, in place of which `now` is written.
struct OldForm : DefinitionError {
  OldForm(const Location& location, const std::string& old, const std::string& now);
  Location location;
  std::string old, now;
};

/// Returns the error with one more caller appended as its last line. An example of such a line is
/// "    from gpt2.json, function 'logits', line 60: x = h(x)", where `what` is "x = h(x)". A long chain keeps its first
/// callers and its last caller.
DefinitionError called_from(const DefinitionError& error, const Location& caller, const std::string& what);

// Splits a line of the expression language into tokens.

struct Token {
  enum class Kind : std::uint8_t { name, integer, number, text, symbol, end };
  Kind kind = Kind::end;
  std::string text;  ///< The text of the token; for a string, its contents without quotes.
  std::size_t column = 0;
  bool is(const char* symbol) const { return kind == Kind::symbol && text == symbol; }
  bool is_word(const char* word) const { return kind == Kind::name && text == word; }
};

/// Splits `text` into tokens. The last token has kind `end`. Throws DefinitionError.
std::vector<Token> tokens_of(const std::string& text, const Location& location);

}  // namespace xtape::model
