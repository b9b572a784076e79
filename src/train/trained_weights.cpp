#include "trained_weights.hpp"

#include "weight_patterns.hpp"

namespace xtape::train {

Store trained_weights(const Model& model, const TrainerOptions& options) {
  if (!options.frozen.empty() && !options.trainable.empty())
    throw Error("'frozen' and 'trainable' exclude each other: give one of them");
  model::check_weight_patterns(model, "frozen", options.frozen);
  model::check_weight_patterns(model, "trainable", options.trainable);
  Store trained;
  for (const Store::Entry& entry : model.weights())
    if (options.trainable.empty() ? !model::matches_weight(entry.name, options.frozen)
                                  : model::matches_weight(entry.name, options.trainable))
      trained.add(entry.name, Array(entry.value));
  for (const Store::Entry& entry : trained)
    if (entry.value.dtype() != model.dtype())
      throw Error("weight '" + entry.name + "' is stored as " + name_of(entry.value.dtype()) +
                  " and cannot be trained: freeze it, or store it as " + name_of(model.dtype()));
  if (trained.empty() && !model.weights().empty())
    throw DefinitionError("'frozen' matches every weight of model '" + model.name() + "': none is left to train");
  return trained;
}

}  // namespace xtape::train
