#include "loss.hpp"

#include <algorithm>

namespace xtape::train {

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

Loss loss_of(const Model& model, const NamedVars& results) {
  const auto scalar = [](const Var& var) { return count_of(var.shape()) == 1; };
  if (results.size() != 2 || !scalar(results[0].second) || !scalar(results[1].second) ||
      !is_floating(results[0].second.dtype()))
    throw DefinitionError("function 'loss' of model '" + model.name() +
                          "' must give two results of one element: the sum of the losses, and the count of what was "
                          "summed, as cross_entropy does");
  return {results[0].second, results[1].second};
}

void check_loss(const Model& model, const Batches& batches) {
  Tape tape(Mode::train);
  const NamedVars inputs = model.inputs(tape, "loss", sizes_of(model, "loss", batches.blank()));
  loss_of(model, model.record(tape, "loss", inputs));
}

std::vector<Feed> feeds_of(const NamedVars& inputs, const Batch& batch) {
  std::vector<Feed> feeds;
  for (const auto& [name, var] : inputs) feeds.emplace_back(var, batch.at(name));
  return feeds;
}

}  // namespace xtape::train
