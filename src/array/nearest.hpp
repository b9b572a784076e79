/// For errors about names: the valid name that is nearest to the one given.
#pragma once

#include <string>
#include <vector>

namespace xtape {

/// The name with the least edit distance to `name` of those that may be meant: they differ in a third of their letters at
/// most, or `name` is how they begin. "" where there is none; the first of several that are equally near.
std::string nearest(const std::string& name, const std::vector<std::string>& names);

/// "; did you mean 'weight'?", or "" where no name is near.
std::string did_you_mean(const std::string& name, const std::vector<std::string>& names);

}  // namespace xtape
