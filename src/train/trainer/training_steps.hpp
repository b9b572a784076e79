/// The training step of a model, planned once for each batch shape.
#pragma once

#include "model/recording/function_cache.hpp"
#include "train/trainer/loss.hpp"
#include "xtape/train.hpp"

namespace xtape::train {

/// The loss and gradients of one batch.
struct TrainingNotes {
  Loss loss;
  std::vector<CarriedState> states;
  NamedVars updates;  ///< The new values of weights that the definition updates itself.
  /// Gradients of the sum of losses, by trained weight. The var is empty if the loss does not depend on the weight. In
  /// a private training, these are sums of the clipped gradients of rows.
  Vars gradients;
};
using TrainingStep = FunctionCache<TrainingNotes>::Function;

/// Adds the times of the steps of the player's plan to `steps`. A time is the sum over all plays that the player has
/// measured.
void add_measured(const Player& player, std::vector<TrainingProfile::Step>& steps);

class TrainingSteps {
 public:
  /// `trained` contains the weights with respect to which the loss is differentiated. Gradients have the same order.
  TrainingSteps(Model& model, const TrainerOptions& options, const Store& trained);
  /// Returns the step for batches of this shape. The steps share memory, so the values of a step are valid until the
  /// next step plays.
  TrainingStep& of(const BatchArrays& batch);
  /// Discards all steps. New plans may take at most `memory` bytes (PlayerOptions::memory). They share the arena of the
  /// model's players. `make_room` is called before each planning. If a step needs more memory, affords(bytes) is
  /// called. It returns whether plans may take `bytes` bytes from now on.
  void limit(std::size_t memory, std::function<void()> make_room, std::function<bool(std::size_t bytes)> affords);
  /// Discards the least recently used step. Returns whether there was one.
  bool drop() { return steps_.drop(); }
  /// Returns the options of the players of steps, with the arena that they share.
  const PlayerOptions& playing() const { return steps_.options(); }
  void forget_seconds();  ///< Resets the times of all steps; see Player.
  /// Returns the times of the plans' steps, for plays since forget_seconds().
  std::vector<TrainingProfile::Step> profile() const;
  /// Returns the fusions of the plan that was played most often since forget_seconds().
  std::vector<Plan::Fusion> fusions() const;

 private:
  Model& model_;
  std::vector<std::string> trained_;
  double clip_norm_;  // PrivacyOptions::clip_norm
  FunctionCache<TrainingNotes> steps_;
  std::function<bool(std::size_t bytes)> affords_;
};

}  // namespace xtape::train
