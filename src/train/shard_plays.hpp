/// The plays of updates: the shards of this rank, each with its micro-batches and carried states.
#pragma once

#include <functional>

#include "batch_shards.hpp"
#include "failed_play.hpp"
#include "observed_steps.hpp"
#include "training_steps.hpp"
#include "xtape/distributed.hpp"

namespace xtape::train {

/// A play of an update: a micro-batch of a shard.
struct ShardPlay {
  std::int64_t shard;
  std::size_t own;       ///< The index of the shard among those of this rank.
  std::uint64_t cursor;  ///< The cursor of the micro-batch.
  std::uint64_t draw;    ///< The random step. With one shard it is the cursor.
  BatchArrays batch;     ///< The rows of the shard.
  bool first, last;      ///< Whether it is the first and the last play of the shard.
};

class ShardPlays {
 public:
  /// All must outlive this object. Plans the training step of the largest shard. Throws DefinitionError if the carried
  /// states cannot be cut.
  ShardPlays(Model& model, const Batches& batches, const TrainerOptions& options, TrainingSteps& steps,
             DistributedOptimizer& optimizer);

  std::int64_t own_shards() const { return optimizer_.last_shard() - optimizer_.first_shard(); }
  /// The number of shards that have rows in the update whose first micro-batch is at `cursor`.
  std::int64_t present(std::uint64_t cursor);
  /// The plays of this rank's shards in that update, in their order, of which the first `present` have rows. Those of a
  /// shard follow each other.
  void for_each(std::uint64_t cursor, std::int64_t present, const std::function<void(const ShardPlay&)>& visit);
  /// The batch, and the states that the play starts from.
  std::vector<Feed> feeds(const TrainingStep& step, const ShardPlay& play) const;
  /// Keeps the states that the play left.
  void keep(const TrainingStep& step, const ShardPlay& play) {
    train::keep(step.player, step.notes.states, left_[play.own]);
  }
  /// The names of the carried states.
  const std::vector<std::string>& states() const { return states_; }
  /// The update has succeeded: the next one continues from the states that it left.
  void advance() { std::swap(carried_, left_); }
  /// The first play of the update whose first micro-batch is at `cursor`.
  RecordedPlay first_play(std::uint64_t cursor);
  /// Plays an observed step on the batch of the first play of the update, with its states and random numbers.
  template <class MakeStep>
  const ObservedSteps::Function& observe(std::uint64_t cursor, const MakeStep& step_of) {
    const ShardPlay play = play_at(cursor, optimizer_.first_shard(), true, true);
    ObservedSteps::Function& step = step_of(play.batch);
    step.player.play(feeds_of(step.inputs, play.batch, step.notes.states, before(play)), play.draw);
    return step;
  }
  /// Plays the update again without summing gradients, and returns the first play that fails. If none does, the first
  /// play, without a capsule; nothing if this rank has no plays.
  std::optional<FailedPlay> find_failure(std::uint64_t cursor);
  /// The training step of a shard of this batch, of the largest batch without an argument.
  TrainingStep& largest_step();

  /// The carried states of all rows, gathered on rank 0; elsewhere and without states empty. All ranks call it at once.
  Store gather_carried(std::uint64_t cursor, ranks::RankGroup& group);
  /// The states that the batch at `cursor` has for all its rows.
  std::vector<CarriedState> whole_states(std::uint64_t cursor);
  /// Continues from the states of all rows.
  void set_carried(std::uint64_t cursor, const Store& whole);
  double batch_seconds = 0;  ///< Spent on making batches.

 private:
  bool continues(std::uint64_t cursor) const { return batches_.training_continues(cursor); }
  const BatchArrays& batch_at(std::uint64_t cursor);
  /// Adds where the rows of the batch come from to the causes that are elements of it.
  void name_rows(Failure& failure, const ShardPlay& play);
  BatchArrays shard_at(std::uint64_t cursor, std::int64_t shard);
  std::int64_t rows_at(std::uint64_t cursor) { return rows_of(batch_at(cursor)); }
  ShardPlay play_at(std::uint64_t cursor, std::int64_t shard, bool first, bool last);
  /// The states that a play starts from; null: zeros.
  const Store* before(const ShardPlay& play) const;

  Model& model_;
  const Batches& batches_;
  const TrainerOptions& options_;
  TrainingSteps& steps_;
  DistributedOptimizer& optimizer_;
  BatchArrays batch_;
  std::uint64_t batch_cursor_ = ~std::uint64_t{0};  // of the batch in batch_
  std::vector<std::string> states_;                 // the names of carried states
  std::vector<std::size_t> axes_;                   // of rows, by carried state
  // Per own shard:
  std::vector<Store> carried_;  // the states that the next update starts from
  std::vector<Store> left_;     // the states after the last micro-batch
};

}  // namespace xtape::train
