/// Upgrades lines of definitions of version 1.
#pragma once

#include "definition.hpp"

namespace xtape::model {

/// Renames the arguments of scan that had other names in version 1: `alike` is `non_sequences`, `real` is `valid`.
void upgrade(Computation& computation);

}  // namespace xtape::model
