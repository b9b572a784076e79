/// Finds unused inputs, overrides without effect, and weights and modules that no line mentions. Such weights would be
/// stored and trained without effect.
#pragma once

#include "model/recording/module.hpp"

namespace xtape::model {

/// Throws DefinitionError for the first module or weight that no line of the model mentions.
void check_usage(const Module& root, const Definition& definition);

/// Throws DefinitionError for the first unused input of a block or function. Used files are checked too. An input
/// counts as used if a line mentions it, or if its type declares a size that a line mentions. An input whose name
/// begins with _ may be unused. It exists because another block that can replace this block reads the input.
void check_inputs(const Definition& definition);

/// Throws DefinitionError if an override of a hyper-parameter of the definition at `path` has no effect (see
/// check_names). Programs that read hyper-parameters of their own may override any.
void check_overrides(const std::string& path, const std::vector<std::pair<std::string, std::string>>& overrides);

}  // namespace xtape::model
