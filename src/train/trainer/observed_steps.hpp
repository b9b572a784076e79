/// Extra plays of a training step that compute only statistics and chosen values. They do not change the training.
#pragma once

#include "model/recording/function_cache.hpp"
#include "train/trainer/loss.hpp"
#include "xtape/train.hpp"

namespace xtape::train {

/// The vars of a module's statistics, each a scalar. A var is empty if the module has nothing to measure.
struct ModuleNotes {
  std::string module;
  Var largest, mean, zeros;  // of the result of the module
  // of the gradient of the sum of losses with respect to the result
  Var gradient_largest, gradient_mean, gradient_zeros;
  Var saturated, masked_rows;
};
struct ObservedNotes {
  Loss loss;
  std::vector<CarriedState> states;
  std::vector<ModuleNotes> modules = {};
};

/// Throws DefinitionError if the function `loss` on a batch of this shape has no value with one of these names (see
/// Model::record). The message suggests the nearest name.
void check_watched(const Model& model, const std::string& loss, const BatchArrays& batch,
                   const std::vector<std::string>& names);

class ObservedSteps {
 public:
  using Function = FunctionCache<ObservedNotes>::Function;
  /// `playing` contains the options of the players of training steps. Observed steps play in the memory of training
  /// steps, because the two never play at the same time.
  ObservedSteps(const Model& model, const PlayerOptions& playing);
  /// Returns the step that computes the values with these names or, without names, the statistics of all modules, in a
  /// play of the function `loss`. Throws as check_watched does.
  Function& of(const std::string& loss, const BatchArrays& batch, const std::vector<std::string>& names);

  /// Returns the statistics of the last play of `step`.
  static std::vector<ModuleStatistics> statistics_of(const Function& step);
  static std::vector<WatchedValue> values_of(const Function& step);

 private:
  const Model& model_;
  FunctionCache<ObservedNotes> steps_;
};

}  // namespace xtape::train
