#include <set>

#include "model/weights/stored_weights.hpp"
#include "optim/optimizer.hpp"
#include "train/run/run_parts.hpp"

namespace xtape::train {

namespace {
bool is_frozen(const std::string& name, const TrainerOptions& options) {
  const std::size_t group = group_of(name, options.groups);
  if (group < options.groups.size() && options.groups[group].options.frozen) return true;
  return options.trainable.empty() ? model::matches_weight(name, options.frozen)
                                   : !model::matches_weight(name, options.trainable);
}
}  // namespace

std::vector<std::string> updated_weights(const Model& model, const TrainerOptions& options) {
  std::vector<std::string> names = model.updated_weights();
  std::erase_if(names, [&](const std::string& name) { return is_frozen(name, options); });
  return names;
}

Store trained_weights(const Model& model, const TrainerOptions& options) {
  if (!options.frozen.empty() && !options.trainable.empty())
    throw Error("'frozen' and 'trainable' exclude each other: give one of them");
  model::check_weight_patterns(model, "frozen", options.frozen);
  model::check_weight_patterns(model, "trainable", options.trainable);
  for (const OptimizerGroup& group : options.groups)
    model::check_weight_patterns(model, "optimizer.groups", {group.weights});
  Store trained;
  const std::vector<std::string> updated = model.updated_weights();
  const std::set<std::string> others(updated.begin(), updated.end());
  for (const Store::Entry& entry : model.weights())
    if (others.count(entry.name) == 0 && !is_frozen(entry.name, options)) trained.add(entry.name, Array(entry.value));
  for (const Store::Entry& entry : trained)
    if (entry.value.dtype() != model.dtype())
      throw Error("weight '" + entry.name + "' is stored as " + name_of(entry.value.dtype()) +
                  " and cannot be trained: freeze it, or store it as " + name_of(model.dtype()));
  if (trained.empty() && !model.weights().empty())
    throw DefinitionError("'frozen' matches every weight of model '" + model.name() + "': none is left to train");
  return trained;
}

}  // namespace xtape::train
