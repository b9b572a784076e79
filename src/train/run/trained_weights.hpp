/// Determines which weights of a model are trained.
#pragma once

#include "xtape/train.hpp"

namespace xtape::train {

/// Returns the weights that gradients train: all weights that are not frozen and that the definition does not update
/// itself. Throws DefinitionError if a pattern matches no weight or if no weight remains. Throws Error if both `frozen`
/// and `trainable` are given, or if a weight is stored as bfloat16, float16 or int8.
Store trained_weights(const Model& model, const TrainerOptions& options);
/// Returns the weights that the definition updates itself and that are not frozen.
std::vector<std::string> updated_weights(const Model& model, const TrainerOptions& options);

}  // namespace xtape::train
