#include "optim/groups.hpp"

#include <fnmatch.h>

#include <algorithm>

namespace xtape {

bool matches_pattern(const std::string& name, const std::string& pattern) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

std::size_t group_of(const std::string& weight, const std::vector<OptimizerGroup>& groups) {
  const auto first =
      std::ranges::find_if(groups, [&](const OptimizerGroup& group) { return matches_pattern(weight, group.weights); });
  return static_cast<std::size_t>(first - groups.begin());
}

}  // namespace xtape
