/// Finds weights and modules that no line mentions, which would be stored and trained without effect, and unused
/// inputs.
#pragma once

#include "module.hpp"

namespace xtape::model {

/// Throws DefinitionError for the first module or weight that no line of the model mentions.
void check_usage(const Module& root, const Definition& definition);

/// Throws DefinitionError for the first input of a block or function, also of used files, that no line mentions and
/// that gives the lines no size. Inputs whose names begin with _ may be unused: other blocks in their place read them.
void check_inputs(const Definition& definition);

}  // namespace xtape::model
