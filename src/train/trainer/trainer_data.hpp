/// What a trainer holds, shared by the files that define it: update.cpp makes an update, trainer.cpp runs the training
/// around it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/run/checkpoint.hpp"
#include "train/trainer/evaluator.hpp"
#include "train/trainer/loss.hpp"
#include "train/trainer/privacy.hpp"
#include "train/trainer/shard_plays.hpp"
#include "train/trainer/training_memory.hpp"
#include "train/trainer/turns.hpp"
#include "train/trainer/weight_average.hpp"
#include "xtape/train.hpp"

namespace xtape {
namespace train {

// The sums of an update, and the weights that the definition updates itself ("update" of a block), such as running
// means.

/// What the plays of an update add up to, for one shard or for all shards.
struct UpdateSums {
  double interrupted = 0;                 ///< The number of shards whose rank is asked to stop.
  double plays = 0;                       ///< The number of plays.
  std::vector<double> losses;             ///< Per loss of the turn: the sum over targets.
  std::vector<double> counts;             ///< Per loss of the turn: the number of targets.
  std::vector<double> not_finite_states;  ///< Per carried state: the number of shards in which it is not finite.
  std::vector<double> updates;            ///< The new elements of the weights of WeightUpdates.

  /// Calls visit(number) for every number. Each rank visits them in the same order.
  template <class Visit>
  void for_each(const Visit& visit) {
    for (double* number : {&interrupted, &plays}) visit(*number);
    for (std::vector<double>* numbers : {&losses, &counts, &not_finite_states, &updates})
      for (double& number : *numbers) visit(number);
  }
};

/// Every play of an update computes new values from the same old values. The update assigns their mean over all plays,
/// that is, over the micro-batches of all shards. The mean is summed by shards, so its bits do not depend on the number
/// of ranks.
class WeightUpdates {
 public:
  /// `names` are the weights to update.
  WeightUpdates(Model& model, const std::vector<std::string>& names);
  /// Returns the number of elements of all these weights.
  std::size_t elements() const { return elements_; }
  /// Adds the new elements of a play to `sums`. If the recording does not update a weight, adds the weight's old value.
  void add(const Player& player, const NamedVars& updates, std::vector<double>& sums) const;
  /// Returns the name of the first weight whose new value is not finite, or "" if there is none.
  std::string first_not_finite(const UpdateSums& sums) const;
  void assign(const UpdateSums& sums);

 private:
  template <class Visit>
  void for_each(const Visit& visit) const;
  Model& model_;  // its arrays may be replaced, so they are looked up at each use
  std::vector<std::string> names_;
  std::size_t elements_ = 0;
};

}  // namespace train

struct Trainer::Data {
  Data(Model& the_model, const Batches& the_batches, const TrainerOptions& the_options);

  Model& model;
  const Batches& batches;
  ranks::RankGroup group;
  TrainerOptions options;
  train::Privacy privacy;
  train::Turns turns;
  DistributedOptimizer optimizer;
  train::WeightUpdates updates;
  std::optional<train::WeightAverage> average;  // set if the options ask for it
  std::size_t resident_without_plans = resident_bytes();
  std::optional<train::TrainingMemory> memory;  // set if memory is limited
  train::TrainingSteps steps;
  train::ShardPlays plays;
  train::State state;
  Plan plan;  // the last result of plan()
  std::optional<train::Evaluator> evaluator;
  std::optional<train::ObservedSteps> observed;
  const Callbacks* called = nullptr;  // the callbacks of fit() while it runs
  bool shows_average = false;         // whether the weights are their averages now
  bool interrupted = false;           // whether this rank is interrupted; all ranks decide together
  double optimizer_seconds = 0;       // time of all updates since the trainer was made or the last profile began

  // Updates
  /// Returns the turn of the next update.
  const train::Turn& turn() const { return turns.at(state.step); }
  /// Plans again within the memory limit of the process. The earlier plans have not been played. They have reserved
  /// memory for their values, but have not used it.
  void keep_to_memory();
  /// Drops plans until there is room for one more. Plans of the other kind (updates or evaluations) are dropped first.
  void make_room(bool to_evaluate) {
    memory->make_room([&] { return drop(to_evaluate); });
  }
  bool drop(bool to_evaluate);
  /// Returns the folders for failures.
  train::FailureFolders folders() const { return {options.capsule, options.failed_play}; }
  /// Plays this rank's shards of the next update, each with its micro-batches, and adds up their gradients. Returns the
  /// other sums for each shard. If a call throws, saves the play and adds a sentence about it to the error.
  std::vector<train::UpdateSums> play();
  /// Plays one micro-batch, and adds it to the sums of its shard.
  void play(const train::ShardPlay& play, train::UpdateSums& shard);
  train::UpdateSums zero_sums() const;
  /// Adds up the sums of the shards of all ranks.
  train::UpdateSums add(std::vector<train::UpdateSums> shards);
  /// Throws TrainingError if the sums have a value that is not finite, or no target.
  void check(const train::UpdateSums& sums);
  /// Updates the weights. Returns the norm of the gradient. Throws TrainingError if an update is not possible.
  double update(double rate, const train::UpdateSums& sums);
  /// Plays the update's micro-batches again to find the op that produces the value that is not finite. Throws
  /// TrainingError.
  [[noreturn]] void throw_not_finite(const std::string& what);
  /// Throws TrainingError for an update that overflows although no call has failed. Rank 0 saves its first play of the
  /// update as one of the plays that produced the gradients.
  [[noreturn]] void throw_overflow(const UpdateError& error);

  // The training around them
  /// Asks whether this rank is interrupted. A single process then stops at once. Several processes continue until all
  /// of them agree to stop.
  void between() {
    interrupted = interrupted || (called != nullptr && called->interrupt && called->interrupt());
    if (interrupted && group.size() == 1) stop_here();
  }

  [[noreturn]] void stop_here() {
    interrupted = false;
    throw train::Interruption();
  }
  /// Creates the evaluator. If memory is limited, evaluations play in the memory of updates, because the two never play
  /// at the same time.
  train::Evaluator new_evaluator();
  /// Calls work() with the weights that evaluations use.
  template <class Work>
  void with_evaluated_weights(const Work& work) {
    if (!average || !options.ema.evaluated || shows_average) return work();
    shows_average = true;
    struct Shown {  // resets `shows_average`, also after an exception
      ~Shown() { shows = false; }
      bool& shows;
    } const shown{shows_average};
    average->show(work);
  }
  /// Records an evaluation and whether it is the best so far by the measure `of`. An evaluation that is not finite is
  /// never the best. Throws Error if evaluations do not have this measure.
  void note(const Evaluation& evaluation, const std::string& of);
  /// Makes the observations that are due before the next update. If `failed` is true, this update has failed, and the
  /// observations that were due before it exist already. In this case, makes the observations that were not due.
  void observe(const FitOptions& fit, const Callbacks& callbacks, bool failed);
  const train::ObservedSteps::Function& play_observed(const std::vector<std::string>& names) {
    if (!observed) observed.emplace(model, steps.playing());
    plays.take(turn());
    return plays.observe(state.cursor, *observed, names);
  }
  std::vector<ModuleStatistics> statistics();
  std::vector<WatchedValue> watched(const std::vector<std::string>& names);
};

}  // namespace xtape
