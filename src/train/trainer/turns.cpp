#include "train/trainer/turns.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/messages/wording.hpp"
#include "model/weights/stored_weights.hpp"
#include "optim/optimizer.hpp"

namespace xtape::train {

namespace {
/// The most updates until the order of the losses begins again.
constexpr std::int64_t most_turns = 1 << 20;

std::string in_updates(std::size_t index, const std::string& what) {
  return "updates[" + std::to_string(index) + "]: " + what;
}

void check(const TrainerOptions& options) {
  for (std::size_t i = 0; i < options.updates.size(); ++i) {
    const LossUpdate& update = options.updates[i];
    if (update.loss.empty()) throw Error(in_updates(i, "'loss' must name a function"));
    for (const auto& [number, name] : {std::pair(update.every, "every"), {update.repeat, "repeat"}})
      if (number < 1 || number > most_turns)
        throw Error(in_updates(i, std::string("'") + name + "' must be 1 to " + std::to_string(most_turns) + ", not " +
                                      std::to_string(number)));
    if (update.clip && !(*update.clip >= 0)) throw Error(in_updates(i, "'clip' must be at least 0 (0: no clipping)"));
    if (options.simultaneous && (update.every > 1 || update.repeat > 1 || update.schedule || update.clip))
      throw Error(in_updates(i,
                             "'every', 'repeat', 'schedule' and 'clip' are for losses that take turns, not for "
                             "'simultaneous' ones"));
  }
  if (!options.updates.empty() &&
      std::ranges::all_of(options.updates, [](const LossUpdate& update) { return update.every > 1; }) &&
      !options.simultaneous)
    throw Error("updates: a loss must have 'every' 1, because each round needs an update");
  if (options.simultaneous && options.updates.size() < 2)
    throw Error("'simultaneous' needs 'updates' of several losses");
}

/// Returns the turns of all rounds until they begin again.
std::vector<std::size_t> order_of(const std::vector<LossUpdate>& updates) {
  std::int64_t rounds = 1;
  for (const LossUpdate& update : updates) rounds = std::min(most_turns + 1, std::lcm(rounds, update.every));
  std::vector<std::size_t> order;
  for (std::int64_t round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < updates.size(); ++i) {
      if (round % updates[i].every != 0) continue;
      order.insert(order.end(), static_cast<std::size_t>(updates[i].repeat), i);
      if (std::ssize(order) > most_turns || rounds > most_turns)
        throw Error("updates: 'every' and 'repeat' must let the order begin again after at most " +
                    std::to_string(most_turns) + " updates");
    }
  return order;
}
}  // namespace

Turns::Turns(const TrainerOptions& options) : several_(!options.updates.empty()), order_{0} {
  check(options);
  const Turn usual{.losses = {}, .name = {}, .schedule = options.schedule, .clip = options.clip};
  const auto add = [&](Turn& turn, const LossUpdate& update) {
    turn.losses.push_back(update);
    turn.name += (turn.name.empty() ? "" : " and ") + update.loss;
  };
  if (!several_) {
    add(turns_.emplace_back(usual), {.loss = "loss"});
  } else if (options.simultaneous) {
    turns_.push_back(usual);
    for (const LossUpdate& update : options.updates) add(turns_[0], update);
  } else {
    for (const LossUpdate& update : options.updates) {
      Turn& turn = turns_.emplace_back(usual);
      add(turn, update);
      turn.own_schedule = update.schedule.has_value();
      turn.schedule = update.schedule.value_or(options.schedule);
      turn.clip = update.clip.value_or(options.clip);
    }
    order_ = order_of(options.updates);
  }
  losses_ = turns_.size();
  add_thaws(options.groups);
}

/// Adds turns for the time after each thaw.
void Turns::add_thaws(const std::vector<OptimizerGroup>& groups) {
  for (const OptimizerGroup& group : groups) {
    if (group.frozen_until < 0) throw Error("optimizer.groups: 'frozen_until' must be at least 0");
    if (group.frozen_until > 0) thaws_.push_back(group.frozen_until);
  }
  std::ranges::sort(thaws_);
  thaws_.erase(std::unique(thaws_.begin(), thaws_.end()), thaws_.end());
  for (const std::int64_t thaw : thaws_)
    for (std::size_t i = 0; i < losses_; ++i) {
      Turn turn = turns_[i];
      turn.begin = thaw;
      turns_.push_back(std::move(turn));
    }
}

std::size_t Turns::index_at(std::int64_t updates) const {
  const auto thawed = static_cast<std::size_t>(std::ranges::upper_bound(thaws_, updates) - thaws_.begin());
  return thawed * losses_ + order_[static_cast<std::size_t>(updates) % order_.size()];
}

std::int64_t Turns::count(std::size_t index, std::int64_t updates) const {
  const auto whole = std::ssize(order_);
  const auto in_first = [&](std::int64_t first) {
    return static_cast<std::int64_t>(std::count(order_.begin(), order_.begin() + first, index % losses_));
  };
  return updates / whole * in_first(whole) + in_first(updates % whole);
}

double Turns::rate_at(std::int64_t updates) const {
  const std::size_t index = index_at(updates);
  const Turn& turn = turns_[index];
  return xtape::rate_at(turn.schedule, (turn.own_schedule ? count(index, updates) : updates) + 1);
}

std::vector<std::string> Turns::functions() const {
  std::vector<std::string> names;
  for (const Turn& turn : turns_)
    for (const LossUpdate& update : turn.losses)
      if (!contains(names, update.loss)) names.push_back(update.loss);
  return names;
}

bool trains(const LossUpdate& update, const std::string& weight) {
  return update.trains.empty() || model::matches_weight(weight, update.trains);
}

std::int64_t frozen_until(const std::string& weight, const std::vector<OptimizerGroup>& groups) {
  const std::size_t group = group_of(weight, groups);
  return group == groups.size() ? 0 : groups[group].frozen_until;
}

std::vector<OptimizerGroup> groups_of(const TrainerOptions& options, const Store& trained) {
  std::vector<OptimizerGroup> groups = options.groups;
  for (const LossUpdate& update : options.updates)
    for (const Store::Entry& weight : trained)
      if (update.optimizer && trains(update, weight.name)) groups.push_back({weight.name, *update.optimizer});
  return groups;
}

}  // namespace xtape::train
