/// Nodes in float64.
#pragma once

#include <vector>

#include "xtape/inspect.hpp"

namespace xtape {

/// The node with all floats as float64, for inputs of these types. Its inputs stay. Throws Error if its op does not
/// take float64.
Node in_float64(Node node, const std::vector<ValueType>& inputs);

}  // namespace xtape
