/// The loops of the elementwise ops.
#pragma once

#include <string>

#include "kernel_form.hpp"

namespace xtape {

/// The loop of the elementwise op of this name. Throws Error if there is none.
TileFunction make_tile(const std::string& op, const KernelForm& form);

/// The loop that converts elements.
TileFunction make_cast(Dtype from, Dtype to);

}  // namespace xtape
