#include "data_sizes.hpp"

namespace xtape::decode {

NamedSizes data_sizes(const Model& model, const std::string& function, const NamedArrays& arrays,
                      const std::vector<std::string>& missing) {
  try {
    return model.sizes(function, arrays, missing);
  } catch (const Error& error) {
    throw DefinitionError("the model does not fit the data: " + std::string(error.what()));
  }
}

}  // namespace xtape::decode
