/// The sizes of a model's functions for arrays of data.
#pragma once

#include <string>
#include <vector>

#include "xtape/model.hpp"

namespace xtape::decode {

/// Model::sizes, but throws DefinitionError if the function does not accept these arrays.
NamedSizes data_sizes(const Model& model, const std::string& function, const NamedArrays& arrays,
                      const std::vector<std::string>& missing = {});

}  // namespace xtape::decode
