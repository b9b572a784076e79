/// Weights chosen by patterns of their names.
#pragma once

#include <string>
#include <vector>

#include "xtape/model.hpp"

namespace xtape::model {

/// Whether a pattern matches, as a shell's do, dots being letters like others: "*.lora_*", "h.[01].*", "wte.weight".
bool matches_weight(const std::string& name, const std::vector<std::string>& patterns);

/// Throws DefinitionError, with the nearest pattern or name, where one of the patterns, which are the value of `key`,
/// matches no weight of the model.
void check_weight_patterns(const Model& model, const std::string& key, const std::vector<std::string>& patterns);

}  // namespace xtape::model
