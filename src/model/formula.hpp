/// Expressions of the definitions' language over numbers that something else than a definition knows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "xtape/named.hpp"

namespace xtape::model {

/// Throws DefinitionError where `text` is no expression, or names what is none of `names`. `whose` says in errors what
/// the expression is: "hyper-parameter 'n_positions'".
void check_formula(const std::string& text, const std::vector<std::string>& names, const std::string& whose);

/// What the expression comes to, a number, as text. Throws DefinitionError.
std::string value_of_formula(const std::string& text, const Named<std::int64_t>& numbers, const std::string& whose);

}  // namespace xtape::model
