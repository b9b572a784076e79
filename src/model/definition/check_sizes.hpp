/// Checks the names of sizes in the types of inputs, because a misspelt name would silently declare a new size.
#pragma once

#include <string>
#include <vector>

#include "model/definition/definition.hpp"
#include "model/language/visible_names.hpp"

namespace xtape::model {

/// Returns whether `name` is probably a misspelling of `meant`: one letter is missing or extra, two adjacent letters
/// are swapped, or (only if `replaced`) one letter is replaced by another letter. Returns false for names of fewer than
/// three characters. Also returns false if the names differ in a word of one letter, such as q_len and k_len, because
/// the difference is intended.
bool is_slip(const std::string& name, const std::string& meant, bool replaced);

/// Throws DefinitionError if a size occurs only once in the types, occurs in no line, and has a name that is probably a
/// misspelling. The intended name may be a visible name (parameter, hyper-parameter) or a size that occurs more often.
void check_sizes(const std::vector<Input>& inputs, const Computation& computation, const VisibleNames& visible);

}  // namespace xtape::model
