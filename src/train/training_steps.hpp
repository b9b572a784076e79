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
  Vars gradients;  ///< Of the sum of losses, by the weights that are trained; empty where it does not depend on one.
};
using TrainingStep = FunctionCache<TrainingNotes>::Function;

class TrainingSteps {
 public:
  /// Gradients are those of the weights `trained`, in this order.
  TrainingSteps(Model& model, const TrainerOptions& options, const Store& trained);
  /// The step for batches of this shape. The steps share memory: what one has computed holds until the next one plays.
  TrainingStep& of(const Batch& batch);
  void forget_seconds();  ///< Of all steps: see Player.
  /// What the plans' steps took, those that played since then.
  std::vector<TrainingProfile::Step> profile() const;
  /// The rules of the plan that was played most since then.
  std::vector<Plan::Fusion> fusions() const;

 private:
  Model& model_;
  std::vector<std::string> trained_;
  FunctionCache<TrainingNotes> steps_;
};

}  // namespace xtape::train
