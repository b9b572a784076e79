/// Which weights of a model are trained.
#pragma once

#include "xtape/train.hpp"

namespace xtape::train {

/// Those that are not frozen. Throws DefinitionError where a pattern matches no weight, or none is left; Error where
/// `frozen` and `trainable` are both given.
Store trained_weights(const Model& model, const TrainerOptions& options);

}  // namespace xtape::train
