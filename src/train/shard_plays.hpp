/// The plays of updates: the shards of this rank, each with its micro-batches and carried states.
#pragma once

#include <functional>

#include "batch_shards.hpp"
#include "failed_play.hpp"
#include "observed_steps.hpp"
#include "training_steps.hpp"
#include "xtape/distributed.hpp"

namespace xtape::train {

class ShardPlays {
 public:
  /// All must outlive this object. Plans the training step of the largest shard. Throws DefinitionError if the carried
  /// states cannot be cut.
  ShardPlays(Model& model, const Batches& batches, const TrainerOptions& options, TrainingSteps& steps,
             DistributedOptimizer& optimizer);

  /// Plays the own shards of the update whose first micro-batch is at `cursor`, and returns the results of each: the
  /// sum of losses, the count of targets, and for each carried state 1 if it is not finite, else 0. Calls `between`
  /// before every play.
  std::vector<double> play(std::uint64_t cursor, const std::function<void()>& between);
  /// The names of the carried states.
  const std::vector<std::string>& states() const { return states_; }
  /// The update has succeeded: the next one continues from the states that it left.
  void advance() { std::swap(carried_, left_); }
  /// The first play of the update whose first micro-batch is at `cursor`.
  RecordedPlay first_play(std::uint64_t cursor);
  /// Plays an observed step on the batch of the first play of the update, with its states and random numbers.
  template <class MakeStep>
  const ObservedSteps::Function& observe(std::uint64_t cursor, const MakeStep& step_of) {
    const std::int64_t shard = optimizer_.first_shard();
    const Batch batch = shard_at(cursor, shard);
    ObservedSteps::Function& step = step_of(batch);
    step.player.play(feeds_of(step.inputs, batch, step.notes.states, before(cursor, 0, true)), draw_of(cursor, shard));
    return step;
  }
  /// Plays the update again without summing gradients, and returns the first play that fails. If none does, the first
  /// play, without a capsule; nothing if this rank has no plays.
  std::optional<FailedPlay> find_failure(std::uint64_t cursor);
  /// The training step of a shard of this batch, of the largest batch without an argument.
  TrainingStep& largest_step();

  /// The carried states of all rows, gathered on rank 0; elsewhere and without states empty. All ranks call it at once.
  Store gather_carried(std::uint64_t cursor, RankGroup& group);
  /// The states that the batch at `cursor` has for all its rows.
  std::vector<CarriedState> whole_states(std::uint64_t cursor);
  /// Continues from the states of all rows.
  void set_carried(std::uint64_t cursor, const Store& whole);
  double batch_seconds = 0;  ///< Spent on making batches.

 private:
  bool continues(std::uint64_t cursor) const { return batches_.training_continues(cursor); }
  const Batch& batch_at(std::uint64_t cursor);
  /// Adds where the rows of the batch come from to the causes that are elements of it.
  void name_rows(Failure& failure, std::uint64_t cursor, std::int64_t shard);
  Batch shard_at(std::uint64_t cursor, std::int64_t shard);
  std::int64_t rows_at(std::uint64_t cursor) { return rows_of(batch_at(cursor)); }
  /// The random step of a shard's play. With one shard it is the cursor.
  static std::uint64_t draw_of(std::uint64_t cursor, std::int64_t shard);
  /// The states that a play of the own shard starts from; null: zeros.
  const Store* before(std::uint64_t cursor, std::size_t own, bool first) const;
  std::vector<Feed> feeds(const TrainingStep& step, const Batch& batch, std::uint64_t cursor, std::size_t own,
                          bool first) const;
  /// Calls visit(own index, cursor, the shard's batch, whether it is the first and the last of the shard) for every
  /// micro-batch of the shard that has rows.
  template <class Visit>
  void for_micro_batches(std::int64_t shard, std::uint64_t cursor, const Visit& visit);

  Model& model_;
  const Batches& batches_;
  const TrainerOptions& options_;
  TrainingSteps& steps_;
  DistributedOptimizer& optimizer_;
  Batch batch_;
  std::uint64_t batch_cursor_ = ~std::uint64_t{0};  // of the batch in batch_
  std::vector<std::string> states_;                 // the names of carried states
  std::vector<std::size_t> axes_;                   // of rows, by carried state
  // Per own shard:
  std::vector<Store> carried_;  // the states that the next update starts from
  std::vector<Store> left_;     // the states after the last micro-batch
};

}  // namespace xtape::train
