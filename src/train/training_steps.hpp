/// The training step of a model, planned once for each batch shape.
#pragma once

#include "function_cache.hpp"
#include "loss.hpp"
#include "xtape/train.hpp"

namespace xtape::train {

/// Loss and gradients of one batch.
struct TrainingNotes {
  Loss loss;
  std::vector<CarriedState> states;
  NamedVars updates;  ///< The new values of weights that the definition updates itself.
  /// Gradients of the sum of losses, by trained weight; an empty Var for a weight that does not affect it. In a private
  /// training, sums of the clipped gradients of rows.
  Vars gradients;
};
using TrainingStep = FunctionCache<TrainingNotes>::Function;

/// Adds the times of the steps of a player's plan, over all plays that it measured.
void add_measured(const Player& player, std::vector<TrainingProfile::Step>& steps);

class TrainingSteps {
 public:
  /// `trained` are the weights to differentiate by; gradients have the same order.
  TrainingSteps(Model& model, const TrainerOptions& options, const Store& trained);
  /// The step for batches of this shape. The steps share memory: a step's values are valid until the next one plays.
  TrainingStep& of(const BatchArrays& batch);
  /// Forgets all steps. Those planned from now on take at most `memory` bytes in plans (PlayerOptions::memory), and
  /// share the arena of the model's players. `make_room` is called before each is planned. If a step
  /// needs more, affords(bytes) says whether plans may take that much from now on.
  void limit(std::size_t memory, std::function<void()> make_room, std::function<bool(std::size_t bytes)> affords);
  /// Forgets the step that was used least recently. Returns whether there was one.
  bool drop() { return steps_.drop(); }
  /// How the players of steps are made, with the arena that they share.
  const PlayerOptions& playing() const { return steps_.options(); }
  void forget_seconds();  ///< Resets the times of all steps; see Player.
  /// The times of the plans' steps that were played since forget_seconds().
  std::vector<TrainingProfile::Step> profile() const;
  /// The fusions of the plan that was played most often since forget_seconds().
  std::vector<Plan::Fusion> fusions() const;

 private:
  Model& model_;
  std::vector<std::string> trained_;
  double clip_norm_;  // of PrivacyOptions
  FunctionCache<TrainingNotes> steps_;
  std::function<bool(std::size_t bytes)> affords_;
};

}  // namespace xtape::train
