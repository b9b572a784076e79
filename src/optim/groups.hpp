/// Groups of weights that an optimiser updates in different ways.
#pragma once

#include <string>
#include <vector>

#include "xtape/optim.hpp"

namespace xtape {

/// Whether the pattern matches the name. Patterns are those of a shell (fnmatch), and a star also matches dots:
/// "*.lora_*", "h.[01].*", "wte.weight".
bool matches_pattern(const std::string& name, const std::string& pattern);
/// ", did you mean …": the name, or a likely pattern of names, that is nearest to a pattern that matches none; or an
/// example of the names.
std::string nearest_pattern(const std::string& pattern, const Store& weights);

/// The index of the first group that matches the weight; groups.size() if none does.
std::size_t group_of(const std::string& weight, const std::vector<OptimizerGroup>& groups);
/// Throws Error if the pattern of a group matches no weight.
void check_patterns(const Store& weights, const std::vector<OptimizerGroup>& groups);

}  // namespace xtape
