#include "feeding.hpp"

#include <algorithm>

namespace xtape::decode {

NamedSizes sizes_of(const Model& model, const std::string& function, const Batch& batch,
                    const std::vector<std::string>& carried) {
  NamedArrays arrays;
  for (const Batch::Field& field : batch.fields) {
    if (std::find(carried.begin(), carried.end(), field.name) != carried.end())
      throw DefinitionError("input '" + field.name + "' of function '" + function + "' of model '" + model.name() +
                            "' is also a result, which makes it a state, but the data has an array of that name");
    arrays.emplace_back(field.name, field.array);
  }
  try {
    return model.sizes(function, arrays, carried);
  } catch (const Error& error) {
    throw DefinitionError("the model does not fit the data: " + std::string(error.what()));
  }
}

std::vector<Feed> feeds_of(const NamedVars& inputs, const Batch& batch) {
  std::vector<Feed> feeds;
  for (const auto& [name, var] : inputs) feeds.emplace_back(var, batch.at(name));
  return feeds;
}

}  // namespace xtape::decode
