/// Finds unused inputs, and weights and modules that no line mentions. Such weights would be stored and trained without
/// effect.
#pragma once

#include "module.hpp"

namespace xtape::model {

/// Throws DefinitionError for the first module or weight that no line of the model mentions.
void check_usage(const Module& root, const Definition& definition);

/// Throws DefinitionError for the first unused input of a block or function. Used files are checked too. An input
/// counts as used if a line mentions it or if its type gives a size to the lines. Inputs whose names begin with _ may
/// be unused, because other blocks that take the same place read them.
void check_inputs(const Definition& definition);

}  // namespace xtape::model
