/// The loops of the elementwise ops.
#pragma once

#include <string>

#include "kernels/table/kernel_form.hpp"

namespace xtape {

/// Returns the loop of the elementwise op of this name. Throws Error if there is none.
TileFunction make_tile(const std::string& op, const KernelForm& form);

/// Returns the loop that converts elements.
TileFunction make_cast(Dtype from, Dtype to);

}  // namespace xtape
