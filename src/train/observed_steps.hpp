/// Extra plays of a training step, of which only statistics and chosen values are computed. They change nothing.
#pragma once

#include "function_cache.hpp"
#include "loss.hpp"
#include "xtape/train.hpp"

namespace xtape::train {

/// The vars of a module's statistics, each a scalar; empty where the module has nothing of the kind.
struct ModuleNotes {
  std::string module;
  Var largest, mean, zeros;                             // of what the module returns
  Var gradient_largest, gradient_mean, gradient_zeros;  // of the gradient of the sum of losses by it
  Var saturated, masked_rows;
};
struct ObservedNotes {
  Loss loss;
  std::vector<CarriedState> states;
  std::vector<ModuleNotes> modules;
};

/// Checks that the training step on a batch of this shape computes values of these names (Model::record). Throws
/// DefinitionError, with the nearest name.
void check_watched(const Model& model, const BatchArrays& batch, const std::vector<std::string>& names);

class ObservedSteps {
 public:
  using Function = FunctionCache<ObservedNotes>::Function;
  /// `playing`: how the players of training steps are made. The two never play at once, so they share memory.
  ObservedSteps(const Model& model, const PlayerOptions& playing);
  /// The step that computes statistics of all modules.
  Function& statistics(const BatchArrays& batch);
  /// The step that computes the values of these names. Throws as check_watched.
  Function& watched(const BatchArrays& batch, const std::vector<std::string>& names);

  /// The statistics of the last play of `step`.
  static std::vector<ModuleStatistics> statistics_of(const Function& step);
  static std::vector<WatchedValue> values_of(const Function& step);

 private:
  const Model& model_;
  FunctionCache<ObservedNotes> steps_;
};

}  // namespace xtape::train
