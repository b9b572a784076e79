/// Checks the names of sizes in the types of inputs: a misspelt name would silently declare a new size.
#pragma once

#include <string>
#include <vector>

#include "definition.hpp"
#include "language/visible_names.hpp"

namespace xtape::model {

/// Whether `name` is probably a misspelling of `meant`: one letter is missing or extra, two adjacent letters are
/// swapped or, if `replaced`, one letter is another. Names of fewer than three characters, and words of one letter
/// (q_len and k_len), differ on purpose and never count.
bool is_slip(const std::string& name, const std::string& meant, bool replaced);

/// Throws DefinitionError for a size that occurs only once in the types and in no line, and that is probably a
/// misspelling of a visible name (parameters, hyper-parameters) or of a size that occurs more often.
void check_sizes(const std::vector<Input>& inputs, const Computation& computation, const VisibleNames& visible);

}  // namespace xtape::model
