/// Splits a line of the expression language into tokens.
#pragma once

#include <string>
#include <vector>

#include "model/language/location.hpp"

namespace xtape::model {

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
