/// Names of sizes in the types of inputs: a name that is misspelt would be taken for one that is new.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "definition.hpp"

namespace xtape::model {

/// Whether `name` looks like `meant` with one slip of the pen: a letter missing, surplus or (`replaced`) another, or two
/// exchanged. Short names, and words of one letter between underscores, differ on purpose.
bool is_slip(const std::string& name, const std::string& meant, bool replaced);

/// Throws DefinitionError where a size is named once, no line mentions it, and one slip of the pen makes it of a name
/// of `known` (parameters, hyper-parameters) or of a size that is named more often.
void check_sizes(const std::vector<Input>& inputs, const Computation& computation, const std::set<std::string>& known);

}  // namespace xtape::model
