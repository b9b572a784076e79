#include "shard_plays.hpp"

#include <algorithm>
#include <chrono>

#include "finite.hpp"

namespace xtape::train {

ShardPlays::ShardPlays(Model& model, const Batches& batches, const TrainerOptions& options, TrainingSteps& steps,
                       DistributedOptimizer& optimizer)
    : model_(model),
      batches_(batches),
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
  const Batch blank = batches_.blank();
  return steps_.of(options_.shards == 1 ? blank : shard_of(blank, 0, options_.shards));
}

const Batch& ShardPlays::batch_at(std::uint64_t cursor) {
  if (batch_cursor_ == cursor) return batch_;
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const double making = Trace::now();
  batch_cursor_ = ~std::uint64_t{0};
  batches_.training(cursor, batch_);
  batch_cursor_ = cursor;
  batch_seconds += std::chrono::duration<double>(Clock::now() - start).count();
  if (options_.trace) options_.trace->add("batch", making);
  return batch_;
}

Batch ShardPlays::shard_at(std::uint64_t cursor, std::int64_t shard) {
  const Batch& batch = batch_at(cursor);
  return options_.shards == 1 ? batch : shard_of(batch, shard, options_.shards);
}

std::uint64_t ShardPlays::draw_of(std::uint64_t cursor, std::int64_t shard) {
  constexpr int cursor_bits = 44;
  return cursor + (static_cast<std::uint64_t>(shard) << cursor_bits);
}

const Store* ShardPlays::before(std::uint64_t cursor, std::size_t own, bool first) const {
  return !continues(cursor) ? nullptr : first ? &carried_[own] : &left_[own];
}

std::vector<Feed> ShardPlays::feeds(const TrainingStep& step, const Batch& batch, std::uint64_t cursor, std::size_t own,
                                    bool first) const {
  return feeds_of(step.inputs, batch, step.notes.states, before(cursor, own, first));
}

template <class Visit>
void ShardPlays::for_micro_batches(std::int64_t shard, std::uint64_t cursor, const Visit& visit) {
  const auto count = static_cast<std::uint64_t>(options_.accumulate);
  const auto has_rows = [&](std::uint64_t i) {
    return options_.shards == 1 || rows_of_shard(rows_at(cursor + i), shard, options_.shards).count() > 0;
  };
  const auto own = static_cast<std::size_t>(shard - optimizer_.first_shard());
  bool first = true;
  for (std::uint64_t i = 0; i < count;) {
    std::uint64_t next = i + 1;
    while (next < count && !has_rows(next)) ++next;
    if (has_rows(i)) {
      visit(own, cursor + i, shard_at(cursor + i, shard), first, next == count);
      first = false;
    }
    i = next;
  }
}

std::vector<double> ShardPlays::play(std::uint64_t cursor, const std::function<void()>& between) {
  std::int64_t present = options_.shards;  // the shards that have rows
  if (present > 1) {
    // Epochs have batches of the same sizes, and two of them hold a whole one wherever they begin. Without epochs all
    // batches have the same size.
    const std::int64_t different = std::max<std::int64_t>(1, 2 * batches_.epoch_batches());
    std::int64_t rows = 0;
    for (std::int64_t i = 0; i < std::min(options_.accumulate, different); ++i)
      rows = std::max(rows, rows_at(cursor + static_cast<std::uint64_t>(i)));
    present = std::min(present, rows);
  }
  optimizer_.begin(present);
  std::vector<double> results;
  for (std::int64_t shard = optimizer_.first_shard(); shard < std::min(present, optimizer_.last_shard()); ++shard) {
    std::vector<double> of_shard(2 + states_.size(), 0);
    for_micro_batches(shard, cursor, [&](std::size_t own, std::uint64_t at, const Batch& batch, bool first, bool last) {
      between();
      TrainingStep& step = steps_.of(batch);
      optimizer_.play(step.player, step.notes.gradients, feeds(step, batch, at, own, first), draw_of(at, shard), last);
      keep(step.player, step.notes.states, left_[own]);
      of_shard[0] += step.player.scalar(step.notes.loss.sum);
      of_shard[1] += step.player.scalar(step.notes.loss.count);
      for (std::size_t i = 0; i < states_.size(); ++i)
        if (!all_finite(step.player.view(step.notes.states[i].result))) of_shard[2 + i] = 1;
    });
    results.insert(results.end(), of_shard.begin(), of_shard.end());
  }
  return results;
}

RecordedPlay ShardPlays::first_play(std::uint64_t cursor) {
  const std::int64_t shard = optimizer_.first_shard();
  const Batch batch = shard_at(cursor, shard);
  TrainingStep& step = steps_.of(batch);
  return recorded_play(step.player, feeds(step, batch, cursor, 0, true), draw_of(cursor, shard));
}

void ShardPlays::name_rows(Failure& failure, std::uint64_t cursor, std::int64_t shard) {
  const std::int64_t first = options_.shards == 1 ? 0 : rows_of_shard(rows_at(cursor), shard, options_.shards).first;
  for (Cause& cause : failure.causes)
    for (const Batch::Entry& array : batch_at(cursor))
      if (!cause.element.empty() && cause.node.ends_with(" input '" + array.name + "'"))
        cause.row = batches_.training_place(cursor, array.name, first + cause.element[0]);
}

std::optional<FailedPlay> ShardPlays::find_failure(std::uint64_t cursor) {
  std::optional<FailedPlay> found;
  for (std::int64_t shard = optimizer_.first_shard(); shard < optimizer_.last_shard(); ++shard)
    for_micro_batches(shard, cursor, [&](std::size_t own, std::uint64_t at, const Batch& batch, bool first, bool) {
      if (found && found->capsule) return;
      TrainingStep& step = steps_.of(batch);
      const std::vector<Feed> fed = feeds(step, batch, at, own, first);
      FailedPlay play = failed_play(step, fed, draw_of(at, shard));
      if (play.capsule) name_rows(play.capsule->failure, at, shard);
      if (!found || play.capsule) found = std::move(play);
      if (found->capsule) return;
      step.player.play(fed, draw_of(at, shard));  // computes the states that the next one starts from
      keep(step.player, step.notes.states, left_[own]);
    });
  return found;
}

}  // namespace xtape::train
