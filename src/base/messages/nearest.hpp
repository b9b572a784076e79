/// Finds the valid name that is nearest to an unknown name, for error messages.
#pragma once

#include <string>
#include <vector>

namespace xtape {

/// Returns the name in `names` with the smallest edit distance to `name`, or the first of several such names. Considers
/// only names that differ from `name` in at most a third of the letters, or that begin with `name`. Returns "" if there
/// is none.
std::string nearest(const std::string& name, const std::vector<std::string>& names);

/// "; did you mean 'weight'?", or "" if `nearest` finds no name.
std::string did_you_mean(const std::string& name, const std::vector<std::string>& names);

}  // namespace xtape
