/// Selects weights by patterns of their names.
#pragma once

#include <string>
#include <vector>

#include "xtape/model.hpp"

namespace xtape::model {

/// Returns whether one of the patterns matches `name`. The patterns have the syntax of OptimizerGroup.
bool matches_weight(const std::string& name, const std::vector<std::string>& patterns);

/// Throws DefinitionError if a pattern matches no weight of the model. The message suggests the nearest pattern or
/// name, and names `key`, the setting that contains the patterns.
void check_weight_patterns(const Model& model, const std::string& key, const std::vector<std::string>& patterns);

}  // namespace xtape::model
