#include "feeding.hpp"

namespace xtape::decode {

NamedSizes sizes_of(const Model& model, const std::string& function, const Batch& batch) {
  NamedArrays arrays;
  for (const Batch::Field& field : batch.fields) arrays.emplace_back(field.name, field.array);
  try {
    return model.sizes(function, arrays);
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
