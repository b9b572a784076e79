#include "feeding.hpp"

#include <algorithm>

namespace xtape::decode {

NamedSizes sizes_of(const Model& model, const std::string& function, const Batch& batch) {
  const Signature& signature = model.signature(function);
  const std::string whose = "function '" + function + "' of model '" + model.name() + "'";
  NamedSizes sizes;
  for (const FunctionInput& input : signature.inputs) {
    const auto field = std::find_if(batch.fields.begin(), batch.fields.end(),
                                    [&](const Batch::Field& each) { return each.name == input.name; });
    if (field == batch.fields.end()) {
      std::string names;
      for (const Batch::Field& each : batch.fields) names += (names.empty() ? "" : ", ") + each.name;
      throw DefinitionError(whose + " takes an input '" + input.name + "', but the data has only " + names);
    }
    const Shape& shape = field->array.shape();
    if (input.dtype != field->array.dtype() || input.dims.size() != shape.size())
      throw DefinitionError("input '" + input.name + "' of " + whose + " must be an int of rank " +
                            std::to_string(shape.size()) + ", as the data gives it");
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      const std::string& dim = input.dims[axis];
      const auto known = [&](const auto& size) { return size.first == dim; };
      if (std::find(signature.sizes.begin(), signature.sizes.end(), dim) != signature.sizes.end() &&
          std::none_of(sizes.begin(), sizes.end(), known))
        sizes.emplace_back(dim, shape[axis]);
    }
  }
  return sizes;
}

std::vector<Feed> feeds_of(const NamedVars& inputs, const Batch& batch) {
  std::vector<Feed> feeds;
  for (const auto& [name, var] : inputs) feeds.emplace_back(var, batch.at(name));
  return feeds;
}

}  // namespace xtape::decode
