/// The training step of a model, planned once for each shape that batches have.
#pragma once

#include "function_cache.hpp"
#include "loss.hpp"
#include "xtape/train.hpp"

namespace xtape::train {

/// Loss and gradients of one batch.
struct TrainingNotes {
  Loss loss;
  std::vector<CarriedState> states;
  Vars gradients;  ///< Of the sum of losses, by the weights in the store's order.
};
using TrainingStep = FunctionCache<TrainingNotes>::Function;

class TrainingSteps {
 public:
  TrainingSteps(Model& model, const TrainerOptions& options);
  /// The step for batches of this shape. The steps share memory: what one has computed holds until the next one plays.
  TrainingStep& of(const Batch& batch);
  void forget_seconds();  ///< Of all steps: see Player.
  /// What the plans' steps took, those that played since then.
  std::vector<TrainingProfile::Step> profile() const;
  /// The rules of the plan that was played most since then.
  std::vector<Plan::Fusion> fusions() const;

 private:
  Model& model_;
  FunctionCache<TrainingNotes> steps_;
};

}  // namespace xtape::train
