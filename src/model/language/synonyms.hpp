/// Names of other libraries, and what to write in a definition in their place.
#pragma once

#include <string>
#include <vector>

#include "model/language/location.hpp"

namespace xtape::model {

struct Synonym {
  const char* names;    ///< Names of functions, methods or attributes, which single spaces separate.
  const char* library;  ///< "PyTorch", "NumPy", ….
  const char* form;     ///< The exact form here, for arrays x and y and a number n.
};

/// All synonyms. No name is that of an op.
const std::vector<Synonym>& synonyms();

/// Returns "'cat' is PyTorch's name; here it is concat(x, y, axis=1)", or `otherwise` if the name is not in the table.
std::string or_synonym(const std::string& name, const std::string& otherwise);

/// The same for a named argument, if it is one of `known` here: "'dim' is PyTorch's name; here it is axis=". Returns ""
/// if the name is not in the table.
std::string keyword_synonym(const std::string& name, const std::vector<std::string>& known);

/// Returns what to write in place of a symbol or word of another language, as the end of an error: ": '**' is the
/// power". Returns "" if there is no hint.
std::string symbol_hint(const Token& token);

}  // namespace xtape::model
