/// What lines mention: nothing may be trained, or stored, that no line uses.
#pragma once

#include "module.hpp"

namespace xtape::model {

/// Throws DefinitionError at the first module or weight that no line of the model uses.
void check_usage(const Module& root, const Definition& definition);

}  // namespace xtape::model
