/// For errors about names: the valid name that is nearest to the one given.
#pragma once

#include <string>
#include <vector>

namespace xtape {

/// The name with the least edit distance to `name`, if near enough to be meant; else "".
std::string nearest(const std::string& name, const std::vector<std::string>& names);

/// "; did you mean 'weight'?", or "" where no name is near.
std::string did_you_mean(const std::string& name, const std::vector<std::string>& names);

}  // namespace xtape
