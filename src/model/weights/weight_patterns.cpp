#include "model/weights/weight_patterns.hpp"

#include <algorithm>

#include "optim/groups.hpp"

namespace xtape::model {

bool matches_weight(const std::string& name, const std::vector<std::string>& patterns) {
  return std::ranges::any_of(patterns, [&](const std::string& pattern) { return matches_pattern(name, pattern); });
}

void check_weight_patterns(const Model& model, const std::string& key, const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) {
    const auto matched = [&](const Store::Entry& entry) { return matches_weight(entry.name, {pattern}); };
    if (std::ranges::any_of(model.weights(), matched)) continue;
    throw DefinitionError("'" + key + "': no weight of model '" + model.name() + "' matches '" + pattern + "'" +
                          nearest_pattern(pattern, model.weights()));
  }
}

}  // namespace xtape::model
