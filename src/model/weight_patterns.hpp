/// Selects weights by patterns of their names.
#pragma once

#include <string>
#include <vector>

#include "xtape/model.hpp"

namespace xtape::model {

/// Whether one of the patterns matches `name`, as those of OptimizerGroup do.
bool matches_weight(const std::string& name, const std::vector<std::string>& patterns);

/// Throws DefinitionError, with the nearest pattern or name, if one of the patterns matches no weight of the model. The
/// message names `key`, the setting that has these patterns.
void check_weight_patterns(const Model& model, const std::string& key, const std::vector<std::string>& patterns);

}  // namespace xtape::model
