#include "feeding.hpp"

#include <algorithm>

namespace xtape::decode {

NamedSizes sizes_of(const Model& model, const std::string& function, const Batch& batch,
                    const std::vector<std::string>& carried) {
  const Signature& signature = model.signature(function);
  const std::string whose = "function '" + function + "' of model '" + model.name() + "'";
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  NamedSizes sizes;
  const auto known = [&](const std::string& dim) {
    return std::any_of(sizes.begin(), sizes.end(), [&](const auto& size) { return size.first == dim; });
  };
  for (const FunctionInput& input : signature.inputs) {
    const auto field = std::find_if(batch.fields.begin(), batch.fields.end(),
                                    [&](const Batch::Field& each) { return each.name == input.name; });
    if (has(carried, input.name)) {
      if (field == batch.fields.end()) continue;
      throw DefinitionError("input '" + input.name + "' of " + whose +
                            " is also a result, which makes it a state, but the data has an array of that name");
    }
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
      if (has(signature.sizes, dim) && !known(dim)) sizes.emplace_back(dim, shape[axis]);
    }
  }
  for (const FunctionInput& input : signature.inputs)
    for (const std::string& dim : input.dims)
      if (has(signature.sizes, dim) && !known(dim))
        throw DefinitionError("input '" + input.name + "' of " + whose + " has a size '" + dim +
                              "', which is neither a hyper-parameter nor a size of the data's arrays");
  return sizes;
}

std::vector<Feed> feeds_of(const NamedVars& inputs, const Batch& batch) {
  std::vector<Feed> feeds;
  for (const auto& [name, var] : inputs) feeds.emplace_back(var, batch.at(name));
  return feeds;
}

}  // namespace xtape::decode
