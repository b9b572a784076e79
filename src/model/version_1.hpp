/// Lines of definitions of version 1, in the words of today.
#pragma once

#include "definition.hpp"

namespace xtape::model {

/// Renames what version 1 called otherwise: the arguments `alike` and `real` of scan.
void upgrade(Computation& computation);

}  // namespace xtape::model
