/// The plays of an update: the training step, planned once for each batch shape, and the plays of this rank's shards
/// with their micro-batches and carried states.
#pragma once

#include "model/recording/function_cache.hpp"
#include "train/trainer/failed_play.hpp"
#include "train/trainer/loss.hpp"
#include "train/trainer/observed_steps.hpp"
#include "train/trainer/turns.hpp"
#include "xtape/distributed.hpp"
#include "xtape/train.hpp"

namespace xtape::train {

/// The losses and gradients of one batch.
struct TrainingNotes {
  std::vector<Loss> losses;  ///< In the order of Turn::losses.
  std::vector<CarriedState> states;
  NamedVars updates;  ///< The new values of weights that the definition updates itself.
  /// Gradients of the sum of losses, by trained weight. The var is empty if no loss depends on the weight and trains
  /// it. In a private training, these are sums of the clipped gradients of rows.
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
  /// Returns the step of a turn for batches of this shape. The steps share memory, so the values of a step are valid
  /// until the next step plays.
  TrainingStep& of(const Turn& turn, const BatchArrays& batch);
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
  std::vector<std::int64_t> frozen_until_;  // by trained weight
  double clip_norm_;                        // PrivacyOptions::clip_norm
  FunctionCache<TrainingNotes> steps_;
  std::function<bool(std::size_t bytes)> affords_;
};

/// One play of an update: one micro-batch of one shard.
struct ShardPlay {
  std::int64_t shard;
  std::size_t own;       ///< The index of the shard among those of this rank.
  std::uint64_t cursor;  ///< The cursor of the micro-batch.
  std::uint64_t draw;    ///< The random step. It equals the cursor if there is only one shard.
  bool first, last;      ///< Whether the play is the first play of the shard, and whether it is the last.
};

class ShardPlays {
 public:
  /// All arguments must outlive this object. Plans the training steps of the largest shard. Throws DefinitionError if
  /// the carried states cannot be cut into shards, or if one of several losses has carried states.
  ShardPlays(const Model& model, const Batches& batches, const TrainerOptions& options, const Turns& turns,
             TrainingSteps& steps, DistributedOptimizer& optimizer);

  /// Makes the plays those of this turn.
  void take(const Turn& turn) { turn_ = &turn; }
  /// Returns the training step of the turn for the rows of a shard.
  TrainingStep& step(const BatchArrays& rows) { return steps_.of(*turn_, rows); }

  std::int64_t own_shards() const { return optimizer_.last_shard() - optimizer_.first_shard(); }
  /// Returns the number of shards that have rows in the update whose first micro-batch is at `cursor`.
  std::int64_t present(std::uint64_t cursor);
  /// Returns the plays of this rank's shards in this update, in order. Only the first `present` shards have rows. The
  /// plays of one shard follow each other.
  std::vector<ShardPlay> of_update(std::uint64_t cursor, std::int64_t present);
  /// Returns the rows of the play's shard. They are valid until the next call.
  BatchArrays batch(const ShardPlay& play) { return shard_at(play.cursor, play.shard); }
  /// Returns the batch, and the states from which the play starts.
  std::vector<Feed> feeds(const TrainingStep& step, const ShardPlay& play, const BatchArrays& batch) const {
    return feeds_of(step.inputs, batch, step.notes.states, before(play));
  }
  /// Keeps the final states of the play.
  void keep(const TrainingStep& step, const ShardPlay& play) {
    train::keep(step.player, step.notes.states, left_[play.own]);
  }
  /// Returns the names of the carried states.
  const std::vector<std::string>& states() const { return states_; }
  /// Reports that the update has succeeded. The next update continues from its final states.
  void advance() { std::swap(carried_, left_); }
  /// Returns the first play of the update whose first micro-batch is at `cursor`.
  RecordedPlay first_play(std::uint64_t cursor);
  /// Plays the observed step for these names on the batch of the first play of the update, with its states and random
  /// numbers.
  const ObservedSteps::Function& observe(std::uint64_t cursor, ObservedSteps& steps,
                                         const std::vector<std::string>& names);
  /// Plays the update again without summing gradients. Returns the first play in which a failing call is found. If
  /// there is no such play, returns the first play of this rank, without a capsule. If this rank has no plays, returns
  /// nothing.
  std::optional<FailedPlay> find_failure(std::uint64_t cursor);
  /// Returns the training step of the turn for a shard of the largest batch.
  TrainingStep& largest_step();
  /// Plans the training steps of all turns for a shard of the largest batch. Returns the gradients by weight, each of
  /// the first turn that has it.
  Vars plan_largest();

  /// Returns the carried states of all rows, gathered on rank 0. The result is empty on other ranks and if there are no
  /// states. All ranks must call this function together.
  Store gather_carried(std::uint64_t cursor, ranks::RankGroup& group);
  /// Returns the states of the batch at `cursor` for all its rows.
  std::vector<CarriedState> whole_states(std::uint64_t cursor);
  /// Continues from the given states of all rows.
  void set_carried(std::uint64_t cursor, const Store& whole);
  double batch_seconds = 0;  ///< Time spent on making batches.

 private:
  bool continues(std::uint64_t cursor) const { return batches_.training_continues(cursor); }
  const BatchArrays& batch_at(std::uint64_t cursor);
  /// Adds the origin of the row to each cause that is an element of the batch.
  void name_rows(Failure& failure, const ShardPlay& play);
  BatchArrays shard_at(std::uint64_t cursor, std::int64_t shard);
  std::int64_t rows_at(std::uint64_t cursor) { return rows_of(batch_at(cursor)); }
  ShardPlay play_at(std::uint64_t cursor, std::int64_t shard, bool first, bool last) const;
  /// Returns the states from which a play starts. Null stands for zeros.
  const Store* before(const ShardPlay& play) const;

  const Batches& batches_;
  const TrainerOptions& options_;
  const Turns& turns_;
  const Turn* turn_;
  TrainingSteps& steps_;
  DistributedOptimizer& optimizer_;
  BatchArrays batch_;
  std::uint64_t batch_cursor_ = ~std::uint64_t{0};  // the cursor of batch_
  std::vector<std::string> states_;                 // the names of carried states
  std::vector<std::size_t> axes_;                   // by carried state: its axis of rows
  // Per own shard:
  std::vector<Store> carried_;  // the states from which the next update starts
  std::vector<Store> left_;     // the states after the last micro-batch
};

}  // namespace xtape::train
