/// For errors about unknown names: the valid name that is nearest to the given one.
#pragma once

#include <string>
#include <vector>

namespace xtape {

/// The one of `names` with the smallest edit distance to `name`, the first of equally near ones. Only names count that
/// differ in at most a third of their letters, or that begin with `name`. "" if there is none.
std::string nearest(const std::string& name, const std::vector<std::string>& names);

/// "; did you mean 'weight'?", or "" if `nearest` finds no name.
std::string did_you_mean(const std::string& name, const std::vector<std::string>& names);

}  // namespace xtape
