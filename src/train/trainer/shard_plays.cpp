#include "train/trainer/shard_plays.hpp"

#include <algorithm>

#include "base/threads/simulated_team.hpp"
#include "player/plan/budget.hpp"
#include "train/trainer/privacy.hpp"
#include "xtape/grad.hpp"

namespace xtape::train {

namespace {
PlayerOptions player_options(const TrainerOptions& options) {
  PlayerOptions playing;
  playing.threads = options.threads;
  playing.seed = options.seed;
  playing.precision = options.precision;
  playing.bits = options.bits;
  playing.profile = options.profile;
  playing.trace = options.trace;
  playing.arena = make_arena();
  return playing;
}

/// Returns the gradients of the loss with respect to the weights that it trains, by trained weight. `trains_weight`
/// says for each trained weight whether the loss trains it now.
Vars gradients_of(const Model& model, Tape& tape, const LossUpdate& update, const Var& sum,
                  const std::vector<std::string>& trained, const std::vector<bool>& trains_weight) {
  Vars by;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < trained.size(); ++i) {
    if (!trains_weight[i]) continue;
    by.push_back(model.weight(tape, trained[i]));
    places.push_back(i);
  }
  const Vars found = grad(sum, by, {.allow_unused = true});
  if (std::ranges::all_of(found, [](const Var& gradient) { return gradient.empty(); }))
    throw DefinitionError("function '" + update.loss + "' of model '" + model.name() +
                          "' does not depend on any trained weight");
  Vars gradients(trained.size());
  for (std::size_t i = 0; i < places.size(); ++i) gradients[places[i]] = found[i];
  return gradients;
}

FunctionCache<TrainingNotes>::Recording with_gradients(const Model& model, const Turn& turn, const BatchArrays& batch,
                                                       const std::vector<std::string>& trained,
                                                       const std::vector<std::int64_t>& frozen_until,
                                                       double clip_norm) {
  Tape tape(Mode::train);
  NamedVars inputs, results;
  TrainingNotes notes;
  notes.gradients.resize(trained.size());
  for (const LossUpdate& update : turn.losses) {
    RecordedLoss recorded = record_loss(model, update.loss, tape, loss_sizes(model, update.loss, batch));
    std::vector<bool> trains_weight;
    for (std::size_t i = 0; i < trained.size(); ++i)
      trains_weight.push_back(trains(update, trained[i]) && frozen_until[i] <= turn.begin);
    Vars gradients = gradients_of(model, tape, update, recorded.loss.sum, trained, trains_weight);
    if (clip_norm > 0) {
      Vars by;
      for (const std::string& name : trained) by.push_back(model.weight(tape, name));
      clip_rows(model, tape, clip_norm, by, recorded, gradients);
    }
    for (const auto& [name, var] : recorded.inputs) inputs.set(name, var);  // losses share the inputs of one name
    for (const auto& [name, var] : recorded.updates) notes.updates.set(name, var);
    for (const auto& [name, var] : recorded.results)
      results.add(turn.losses.size() == 1 ? name : update.loss + "." + name, var);
    notes.losses.push_back(recorded.loss);
    notes.states = recorded.states;  // there are none if there are several losses
    for (std::size_t i = 0; i < gradients.size(); ++i)
      if (!gradients[i].empty()) notes.gradients[i] = gradients[i];
  }
  for (std::size_t i = 0; i < trained.size(); ++i)
    if (!notes.gradients[i].empty()) results.add("grad." + trained[i], notes.gradients[i]);
  for (const auto& [name, var] : notes.updates) results.add("update." + name, var);
  return {tape, inputs, results, notes};
}
}  // namespace

TrainingSteps::TrainingSteps(Model& model, const TrainerOptions& options, const Store& trained)
    : model_(model),
      trained_(trained.names()),
      frozen_until_([&] {
        std::vector<std::int64_t> of_weight;
        for (const std::string& name : trained_) of_weight.push_back(frozen_until(name, options.groups));
        return of_weight;
      }()),
      clip_norm_(options.privacy.clip_norm),
      steps_(64, player_options(options)) {}

TrainingStep& TrainingSteps::of(const Turn& turn, const BatchArrays& batch) {
  NamedSizes sizes;
  for (const LossUpdate& update : turn.losses)
    for (const auto& [name, size] : loss_sizes(model_, update.loss, batch))
      sizes.add(turn.losses.size() == 1 ? name : update.loss + "." + name, size);
  const auto planned = [&]() -> TrainingStep& {
    return *steps_.of(
        {turn.name, Mode::train, sizes, "gradients from " + std::to_string(turn.begin)},
        [&](const FunctionKey&) { return with_gradients(model_, turn, batch, trained_, frozen_until_, clip_norm_); });
  };
  try {
    return planned();
  } catch (const LimitError& error) {
    // The limit was chosen for the largest batch. The smallest plan for a smaller batch can need slightly more.
    if (!affords_ || !affords_(error.least())) throw;
    steps_.plan_within(error.least());
    return planned();
  }
}

void TrainingSteps::limit(std::size_t memory, std::function<void()> make_room,
                          std::function<bool(std::size_t bytes)> affords) {
  PlayerOptions options = steps_.options();
  options.memory = memory;
  options.arena = model_.player_options().arena;
  steps_ = FunctionCache<TrainingNotes>(64, options, std::move(make_room));
  affords_ = std::move(affords);
}

void TrainingSteps::forget_seconds() {
  for (const auto& step : steps_) step->player.forget_seconds();
}

std::vector<TrainingProfile::Step> TrainingSteps::profile() const {
  std::vector<TrainingProfile::Step> steps;
  for (const auto& each : steps_) add_measured(each->player, steps);
  return steps;
}

std::vector<Plan::Fusion> TrainingSteps::fusions() const {
  const Player* most = nullptr;
  for (const auto& each : steps_)
    if (most == nullptr || each->player.measured() > most->measured()) most = &each->player;
  return most == nullptr ? std::vector<Plan::Fusion>() : most->plan().fusions;
}

void add_measured(const Player& player, std::vector<TrainingProfile::Step>& steps) {
  const std::int64_t plays = player.measured();
  const auto times = static_cast<double>(plays);
  for (std::size_t i = 0; plays > 0 && i < player.seconds().size(); ++i) {
    const Plan::Step& step = player.plan().steps[i];
    steps.push_back({step.op, step.module, plays, player.seconds()[i], step.flops * times, step.bytes * times});
  }
}

// The plays of shards.

ShardPlays::ShardPlays(const Model& model, const Batches& batches, const TrainerOptions& options, const Turns& turns,
                       TrainingSteps& steps, DistributedOptimizer& optimizer)
    : batches_(batches),
      options_(options),
      turns_(turns),
      turn_(&turns.all()[0]),
      steps_(steps),
      optimizer_(optimizer),
      batch_(batches.blank()) {
  for (const std::string& function : turns.functions()) {
    states_ = carried_names(model, function);
    if (!states_.empty() && turns.several())
      throw DefinitionError("function '" + function + "' of model '" + model.name() + "' has the carried state '" +
                            states_[0] + "', which a training with several losses ('updates') cannot have");
    if (options.shards > 1) axes_ = row_axes(model, function);
  }
  const auto own = static_cast<std::size_t>(optimizer.last_shard() - optimizer.first_shard());
  carried_.resize(own);
  left_.resize(own);
  optimizer.arrange(plan_largest());
}

TrainingStep& ShardPlays::largest_step() {
  const BatchArrays blank = batches_.blank();
  return step(options_.shards == 1 ? blank : shard_of(blank, 0, options_.shards));
}

Vars ShardPlays::plan_largest() {
  const Turn* const current = turn_;
  Vars gradients;
  for (const Turn& turn : turns_.all()) {
    take(turn);
    const Vars& of_turn = largest_step().notes.gradients;
    gradients.resize(of_turn.size());
    for (std::size_t i = 0; i < of_turn.size(); ++i)
      if (gradients[i].empty()) gradients[i] = of_turn[i];
  }
  take(*current);
  return gradients;
}

const BatchArrays& ShardPlays::batch_at(std::uint64_t cursor) {
  if (batch_cursor_ == cursor) return batch_;
  SimulatedTeam* const team = SimulatedTeam::current();
  if (team != nullptr) team->worked("(rest)");
  const double making = Trace::now();
  batch_cursor_ = ~std::uint64_t{0};
  batches_.training(cursor, batch_);
  batch_cursor_ = cursor;
  batch_seconds += Trace::now() - making;
  if (team != nullptr) team->worked("(batches)");
  if (options_.trace) options_.trace->add("batch", making);
  return batch_;
}

BatchArrays ShardPlays::shard_at(std::uint64_t cursor, std::int64_t shard) {
  const BatchArrays& batch = batch_at(cursor);
  return options_.shards == 1 ? batch : shard_of(batch, shard, options_.shards);
}

ShardPlay ShardPlays::play_at(std::uint64_t cursor, std::int64_t shard, bool first, bool last) const {
  constexpr int cursor_bits = 44;
  return {.shard = shard,
          .own = static_cast<std::size_t>(shard - optimizer_.first_shard()),
          .cursor = cursor,
          .draw = cursor + (static_cast<std::uint64_t>(shard) << cursor_bits),
          .first = first,
          .last = last};
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
  TrainingStep& of_rows = step(rows);
  return recorded_play(of_rows.player, feeds(of_rows, play, rows), play.draw);
}

const ObservedSteps::Function& ShardPlays::observe(std::uint64_t cursor, ObservedSteps& steps,
                                                   const std::vector<std::string>& names) {
  const ShardPlay play = play_at(cursor, optimizer_.first_shard(), true, true);
  const BatchArrays rows = without_copies(batch(play));  // statistics count each row once
  ObservedSteps::Function& observed = steps.of(turn_->losses[0].loss, rows, names);
  observed.player.play(feeds_of(observed.inputs, rows, observed.notes.states, before(play)), play.draw);
  return observed;
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
    TrainingStep& of_rows = step(rows);
    const std::vector<Feed> fed = feeds(of_rows, play, rows);
    FailedPlay failed = failed_play(of_rows, fed, play.draw);
    if (failed.capsule) name_rows(failed.capsule->failure, play);
    if (!found || failed.capsule) found = std::move(failed);
    if (found->capsule) break;
    of_rows.player.play(fed, play.draw);  // computes the states from which the next play starts
    keep(of_rows, play);
  }
  return found;
}

// Carried states of a whole batch, gathered from the shards of all ranks and distributed to them.

std::vector<CarriedState> ShardPlays::whole_states(std::uint64_t cursor) {
  if (options_.shards == 1) return step(batch_at(cursor)).notes.states;
  const std::int64_t rows = rows_at(cursor);
  std::vector<CarriedState> states = step(shard_at(cursor, 0)).notes.states;
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
