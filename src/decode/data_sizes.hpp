/// A model's functions, for the arrays of data.
#pragma once

#include <string>
#include <vector>

#include "xtape/model.hpp"

namespace xtape::decode {

/// Model::sizes. Throws DefinitionError where the function does not take these arrays.
NamedSizes data_sizes(const Model& model, const std::string& function, const NamedArrays& arrays,
                      const std::vector<std::string>& missing = {});

}  // namespace xtape::decode
