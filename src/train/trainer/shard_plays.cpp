#include "train/trainer/shard_plays.hpp"

#include <algorithm>

namespace xtape::train {

ShardPlays::ShardPlays(const Model& model, const Batches& batches, const TrainerOptions& options, TrainingSteps& steps,
                       DistributedOptimizer& optimizer)
    : batches_(batches),
      options_(options),
      steps_(steps),
      optimizer_(optimizer),
      batch_(batches.blank()),
      states_(carried_names(model, "loss")) {
  if (options.shards > 1) axes_ = row_axes(model, "loss");
  const auto own = static_cast<std::size_t>(optimizer.last_shard() - optimizer.first_shard());
  carried_.resize(own);
  left_.resize(own);
  optimizer.arrange(largest_step().notes.gradients);
}

TrainingStep& ShardPlays::largest_step() {
  const BatchArrays blank = batches_.blank();
  return steps_.of(options_.shards == 1 ? blank : shard_of(blank, 0, options_.shards));
}

const BatchArrays& ShardPlays::batch_at(std::uint64_t cursor) {
  if (batch_cursor_ == cursor) return batch_;
  const double making = Trace::now();
  batch_cursor_ = ~std::uint64_t{0};
  batches_.training(cursor, batch_);
  batch_cursor_ = cursor;
  batch_seconds += Trace::now() - making;
  if (options_.trace) options_.trace->add("batch", making);
  return batch_;
}

BatchArrays ShardPlays::shard_at(std::uint64_t cursor, std::int64_t shard) {
  const BatchArrays& batch = batch_at(cursor);
  return options_.shards == 1 ? batch : shard_of(batch, shard, options_.shards);
}

ShardPlay ShardPlays::play_at(std::uint64_t cursor, std::int64_t shard, bool first, bool last) const {
  constexpr int cursor_bits = 44;
  return {shard,  static_cast<std::size_t>(shard - optimizer_.first_shard()),
          cursor, cursor + (static_cast<std::uint64_t>(shard) << cursor_bits),
          first,  last};
}

const Store* ShardPlays::before(const ShardPlay& play) const {
  return !continues(play.cursor) ? nullptr : play.first ? &carried_[play.own] : &left_[play.own];
}

std::int64_t ShardPlays::present(std::uint64_t cursor) {
  if (options_.shards == 1) return 1;
  // All epochs have batches of the same sizes. Any sequence of batches as long as two epochs contains a whole epoch.
  // Without epochs, all batches have the same size.
  const std::int64_t different = std::max<std::int64_t>(1, 2 * batches_.epoch_batches());
  std::int64_t rows = 0;
  for (std::int64_t i = 0; i < std::min(options_.accumulate, different); ++i)
    rows = std::max(rows, rows_at(cursor + static_cast<std::uint64_t>(i)));
  return std::min(options_.shards, rows);
}

std::vector<ShardPlay> ShardPlays::of_update(std::uint64_t cursor, std::int64_t present) {
  std::vector<ShardPlay> plays;
  for (std::int64_t shard = optimizer_.first_shard(); shard < std::min(present, optimizer_.last_shard()); ++shard) {
    bool first = true;
    for (std::uint64_t i = cursor; i < cursor + static_cast<std::uint64_t>(options_.accumulate); ++i) {
      if (options_.shards > 1 && rows_of_shard(rows_at(i), shard, options_.shards).count() == 0) continue;
      plays.push_back(play_at(i, shard, first, false));
      first = false;
    }
    if (!first) plays.back().last = true;
  }
  return plays;
}

RecordedPlay ShardPlays::first_play(std::uint64_t cursor) {
  const ShardPlay play = play_at(cursor, optimizer_.first_shard(), true, true);
  const BatchArrays rows = batch(play);
  TrainingStep& step = steps_.of(rows);
  return recorded_play(step.player, feeds(step, play, rows), play.draw);
}

void ShardPlays::name_rows(Failure& failure, const ShardPlay& play) {
  const std::int64_t first =
      options_.shards == 1 ? 0 : rows_of_shard(rows_at(play.cursor), play.shard, options_.shards).first;
  for (Cause& cause : failure.causes)
    for (const BatchArrays::Entry& array : batch_at(play.cursor))
      if (!cause.element.empty() && cause.node.ends_with(" input '" + array.name + "'"))
        cause.row = batches_.training_place(play.cursor, array.name, first + cause.element[0]);
}

std::optional<FailedPlay> ShardPlays::find_failure(std::uint64_t cursor) {
  std::optional<FailedPlay> found;
  for (const ShardPlay& play : of_update(cursor, options_.shards)) {
    const BatchArrays rows = batch(play);
    TrainingStep& step = steps_.of(rows);
    const std::vector<Feed> fed = feeds(step, play, rows);
    FailedPlay failed = failed_play(step, fed, play.draw);
    if (failed.capsule) name_rows(failed.capsule->failure, play);
    if (!found || failed.capsule) found = std::move(failed);
    if (found->capsule) break;
    step.player.play(fed, play.draw);  // computes the states from which the next play starts
    keep(step, play);
  }
  return found;
}

// Carried states of a whole batch, gathered from the shards of all ranks and distributed to them.

std::vector<CarriedState> ShardPlays::whole_states(std::uint64_t cursor) {
  if (options_.shards == 1) return steps_.of(batch_at(cursor)).notes.states;
  const std::int64_t rows = rows_at(cursor);
  std::vector<CarriedState> states = steps_.of(shard_at(cursor, 0)).notes.states;
  for (std::size_t i = 0; i < states.size(); ++i) {
    Shape shape = states[i].zeros.shape();
    shape[axes_[i]] = rows;
    states[i].zeros = Array(states[i].zeros.dtype(), shape);
  }
  return states;
}

Store ShardPlays::gather_carried(std::uint64_t cursor, ranks::RankGroup& group) {
  if (!continues(cursor) || states_.empty()) return {};
  if (options_.shards == 1) return carried_[0];
  const std::int64_t rows = rows_at(cursor);
  Store whole;
  std::vector<Communicator::Request> requests;
  const std::vector<CarriedState> states = whole_states(cursor);
  for (std::size_t i = 0; i < states.size(); ++i) {
    Array array = states[i].zeros.clone();
    for (int rank = 0; rank < group.size(); ++rank) {
      if (rank != group.rank() && group.rank() != 0) continue;
      const ranks::Shards shards = ranks::shards_of(rank, group.size(), options_.shards);
      for (std::int64_t shard = shards.first; shard < shards.last; ++shard) {
        const ranks::Shards of = rows_of_shard(rows, shard, options_.shards);
        if (of.count() == 0) continue;
        const auto own = static_cast<std::size_t>(shard - optimizer_.first_shard());
        Array part =
            rank == group.rank() ? carried_[own].at(states[i].name) : part_of(array, axes_[i], of.first, of.last);
        if (rank != group.rank())
          requests.push_back(group.communicator().receive(rank, part.data(), part.bytes()));
        else if (rank != 0)
          requests.push_back(group.communicator().send(0, part.data(), part.bytes()));
        group.wait(requests);
        if (group.rank() == 0) set_part(array, axes_[i], of.first, part);
      }
    }
    whole.add(states[i].name, array);
  }
  return group.rank() == 0 ? whole : Store();
}

void ShardPlays::set_carried(std::uint64_t cursor, const Store& whole) {
  if (whole.empty()) {
    for (Store& states : carried_) states = Store();
    return;
  }
  if (options_.shards == 1) {
    carried_[0] = whole;
    return;
  }
  const std::int64_t rows = rows_at(cursor);
  for (std::size_t own = 0; own < carried_.size(); ++own) {
    const ranks::Shards of =
        rows_of_shard(rows, optimizer_.first_shard() + static_cast<std::int64_t>(own), options_.shards);
    carried_[own] = Store();
    if (of.count() == 0) continue;
    for (std::size_t i = 0; i < states_.size(); ++i)
      carried_[own].add(states_[i], part_of(whole.at(states_[i]), axes_[i], of.first, of.last));
  }
}

}  // namespace xtape::train
