/// The plays of updates: the shards of this rank, each with its micro-batches and carried states.
#pragma once

#include <functional>

#include "batch_shards.hpp"
#include "rank_group.hpp"
#include "training_steps.hpp"
#include "xtape/distributed.hpp"
#include "xtape/inspect.hpp"

namespace xtape::train {

class ShardPlays {
 public:
  /// All must outlive this object. Plans the training step of the largest shard. Throws DefinitionError if the carried
  /// states cannot be cut.
  ShardPlays(Model& model, const Batches& batches, const TrainerOptions& options, TrainingSteps& steps,
             DistributedOptimizer& optimizer);

  /// Plays the own shards of the update whose first micro-batch is at `cursor`, and returns the sum of losses and the
  /// count of targets of each. Calls `between` before every play.
  std::vector<double> play(std::uint64_t cursor, const std::function<void()>& between);
  /// The update has succeeded: the next one continues from the states that it left.
  void advance() { std::swap(carried_, left_); }
  /// The first play of the update whose first micro-batch is at `cursor`.
  RecordedPlay first_play(std::uint64_t cursor);
  /// Plays the update again without summing gradients, and returns what makes it fail, if anything does.
  std::optional<Capsule> find_failure(std::uint64_t cursor);
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
  Batch shard_at(std::uint64_t cursor, std::int64_t shard);
  std::int64_t rows_at(std::uint64_t cursor) { return rows_of(batch_at(cursor)); }
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
  std::vector<std::size_t> axes_;                   // of rows, by carried state
  // Per own shard:
  std::vector<Store> carried_;  // the states that the next update starts from
  std::vector<Store> left_;     // the states after the last micro-batch
};

}  // namespace xtape::train
