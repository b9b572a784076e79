/// The order in which several losses make the updates of a training.
#pragma once

#include <string>
#include <vector>

#include "xtape/trainer.hpp"

namespace xtape::train {

/// What an update does: the losses that it computes, with its schedule and clip.
struct Turn {
  std::vector<LossUpdate> losses;  ///< One, or all of a simultaneous training.
  std::string name;                ///< "critic_loss", "critic_loss and generator_loss".
  bool own_schedule = false;       ///< Whether `schedule` counts the updates of this turn only.
  ScheduleOptions schedule;
  double clip = 0;
  std::int64_t begin = 0;  ///< Groups that are frozen until a later update have no gradients.
};

/// The turns of a training. The update number decides whose turn it is, so a resumed training needs no further state.
class Turns {
 public:
  /// A training with one loss has one turn. Throws Error if an option of the losses is out of range.
  explicit Turns(const TrainerOptions& options);
  const std::vector<Turn>& all() const { return turns_; }
  std::vector<Turn>& all() { return turns_; }
  /// Returns the index of the turn that makes the update after `updates` updates.
  std::size_t index_at(std::int64_t updates) const;
  const Turn& at(std::int64_t updates) const { return turns_[index_at(updates)]; }
  /// Returns how many of the first `updates` updates have the losses of turn `index`.
  std::int64_t count(std::size_t index, std::int64_t updates) const;
  /// Returns the learning rate of the update after `updates` updates.
  double rate_at(std::int64_t updates) const;
  /// Returns whether there are several losses, whose names reports give.
  bool several() const { return several_; }
  /// Returns the functions of all losses, each once.
  std::vector<std::string> functions() const;

 private:
  void add_thaws(const std::vector<OptimizerGroup>& groups);

  bool several_;
  std::vector<Turn> turns_;
  std::size_t losses_ = 1;           // turns until the next group thaws; then as many others follow
  std::vector<std::int64_t> thaws_;  // the numbers of updates after which groups thaw, in order
  std::vector<std::size_t> order_;   // the turns of the updates until the order begins again
};

/// Returns whether the loss trains the weight, if the training does.
bool trains(const LossUpdate& update, const std::string& weight);
/// Returns the number of updates before which the weight stays unchanged.
std::int64_t frozen_until(const std::string& weight, const std::vector<OptimizerGroup>& groups);

/// The optimizers of the losses as groups of single weights, after the groups of the options.
std::vector<OptimizerGroup> groups_of(const TrainerOptions& options, const Store& trained);

}  // namespace xtape::train
