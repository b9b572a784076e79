/// Converts nodes to float64.
#pragma once

#include <vector>

#include "xtape/inspect.hpp"

namespace xtape {

/// Returns the node with float64 in place of all float dtypes, for inputs of these types. Its inputs do not change.
/// Throws Error if its op does not support float64.
Node in_float64(Node node, const std::vector<ValueType>& inputs);

}  // namespace xtape
