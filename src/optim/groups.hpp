/// Groups of weights for which an optimiser has different options.
#pragma once

#include <string>
#include <vector>

#include "xtape/optim.hpp"

namespace xtape {

/// Returns whether the pattern matches the name. Patterns have the syntax of shell patterns (fnmatch), but a star also
/// matches dots: "*.lora_*", "h.[01].*", "wte.weight".
bool matches_pattern(const std::string& name, const std::string& pattern);
/// Returns the hint for a pattern that matches no weight. The hint is ", did you mean …" with the nearest name or
/// likely pattern. If nothing is near, the hint is an example of the names.
std::string nearest_pattern(const std::string& pattern, const Store& weights);

/// Returns the index of the first group that matches the weight, or groups.size() if no group matches.
std::size_t group_of(const std::string& weight, const std::vector<OptimizerGroup>& groups);
/// Throws Error if the pattern of a group matches no weight.
void check_patterns(const Store& weights, const std::vector<OptimizerGroup>& groups);

}  // namespace xtape
