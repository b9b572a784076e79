/// The weights of a model that are trained.
#pragma once

#include "xtape/train.hpp"

namespace xtape::train {

/// The weights that gradients train: those that are not frozen, without those that the definition updates itself.
/// Throws DefinitionError if a pattern matches no weight, or no weight is left, and Error if both `frozen` and
/// `trainable` are given or a weight is stored as a half or int8.
Store trained_weights(const Model& model, const TrainerOptions& options);
/// The weights that the definition updates itself and that are not frozen.
std::vector<std::string> updated_weights(const Model& model, const TrainerOptions& options);

}  // namespace xtape::train
