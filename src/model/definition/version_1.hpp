/// Upgrades lines of definitions of version 1.
#pragma once

#include "model/definition/definition.hpp"

namespace xtape::model {

/// Renames the arguments of scan that have different names in version 1: `alike` becomes `non_sequences`, `real`
/// becomes `valid`.
void upgrade(Computation& computation);

}  // namespace xtape::model
