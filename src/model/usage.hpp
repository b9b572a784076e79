/// Finds weights and modules that no line mentions: they would be stored and trained without effect.
#pragma once

#include "module.hpp"

namespace xtape::model {

/// Throws DefinitionError for the first module or weight that no line of the model mentions.
void check_usage(const Module& root, const Definition& definition);

}  // namespace xtape::model
