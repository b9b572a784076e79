/// Evaluates expressions of the definition language outside a definition: over sizes of the data, and over the
/// hyper-parameters of a model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "xtape/model.hpp"

namespace xtape::model {

/// Throws DefinitionError if `text` is not an expression, or uses a name that is not in `names`. If `names` is empty,
/// the names are not known yet. `whose` describes the expression in errors: "hyper-parameter 'n_positions'".
void check_formula(const std::string& text, const std::vector<std::string>& names, const std::string& whose);

/// Evaluates the expression over `numbers` to a number and returns the number as text. Throws DefinitionError as
/// check_formula does, and if the value is not a number.
std::string value_of_formula(const std::string& text, const Named<std::int64_t>& numbers, const std::string& whose);

/// Evaluates the expression over the hyper-parameters that are integers. Throws DefinitionError, also if the value is
/// not an integer.
std::int64_t integer_of_formula(const std::string& text, const Hyper& hyper, const std::string& whose);

}  // namespace xtape::model
