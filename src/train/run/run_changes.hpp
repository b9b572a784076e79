/// What may change in the recipe of a run, and the record of these changes in its recipe.json.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "xtape/recipe.hpp"

namespace xtape::train {

/// Throws DefinitionError if `settings` have changed a key of a run's recipe that cannot change, because the run's
/// weights or checkpoints would lose their meaning. `before` is the text of the recipe of the run in `directory`, and
/// `after` that of the recipe with the settings. The table in run_changes.cpp has the keys.
void check_changes(const std::string& directory, const std::string& before, const std::string& after,
                   const std::vector<Setting>& settings);

/// Writes the recipe `after` to recipe.json of the run in `directory`, if it differs from `before` or if the record of
/// changes is out of date, because the run has gone back to an earlier step. The updates after `step` are made with
/// `after`. The entry "changes" keeps the former values: each of its elements has the last step made with the values
/// that it lists. The file is replaced in one step. Returns the recipe with the record. Throws FileError.
std::string write_changes(const std::string& directory, const std::string& before, const std::string& after,
                          std::int64_t step);

}  // namespace xtape::train
