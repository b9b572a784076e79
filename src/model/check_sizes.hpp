/// Names of sizes in the types of inputs: a name that is misspelt would be taken for one that is new.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "definition.hpp"

namespace xtape::model {

/// Throws DefinitionError where a size is named once, no line mentions it, and one slip of the pen makes it of a name
/// of `known` (parameters, hyper-parameters) or of a size that is named more often.
void check_sizes(const std::vector<Input>& inputs, const Computation& computation, const std::set<std::string>& known);

}  // namespace xtape::model
