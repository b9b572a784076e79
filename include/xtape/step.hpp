/// Training steps: one call plays a loss and its gradients, and updates the weights.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <utility>
#include <vector>

#include "xtape/compiled.hpp"
#include "xtape/optim.hpp"

namespace xtape {

/// What a step minimises: a loss on a tape, or a function that records it. Converts from both.
class Objective {
 public:
  Objective(const Var& loss) : results_{loss} {}                        // NOLINT: converts by intent
  Objective(const Vars& results) : results_(results) {}                 // NOLINT: the first is the loss
  Objective(std::initializer_list<Var> results) : results_(results) {}  // NOLINT: the same
  template <class F,
            class = std::enable_if_t<!std::is_convertible<F, Var>::value && !std::is_convertible<F, Vars>::value>>
  Objective(F function) : function_(Compiled::function_of(std::move(function))) {}  // NOLINT: converts by intent

  const Vars& results() const { return results_; }                  ///< For a loss on a tape; else empty.
  const Compiled::Function& function() const { return function_; }  ///< Else null.

 private:
  Vars results_;
  Compiled::Function function_;
};

/// How a Step trains.
struct StepOptions {
  /// The course of the learning rate. Its highest rate is that of the optimiser, or for one without a rate, its own.
  ScheduleOptions schedule = {};
  double clip = 0;            ///< The global norm to which gradients are clipped; 0: no clipping.
  PlayerOptions player = {};  ///< Threads, seed, precision, memory … Threads are also those of the optimiser.
};

/// A training step: plays a loss and its gradients by weights, and updates them.
///
///   Step step(loss, weights, AdamW{.rate = 1e-3});  // a loss that is recorded on a tape
///   double before = step({{x, batch}, {y, labels}});
///
///   // Or a function that records it, which has a plan for each size of batches:
///   Step step([&](Var x, Var y) { return mean(square(f(x) - y)); }, weights, AdamW{});
///   for (auto [bx, by] : batches(32, seed, x, y)) step({bx, by});
///
/// Weights that the loss does not reach stay unchanged. A number that changes during the training, such as a weight of a
/// term of the loss, is an argument, `step({bx, by, 0.5})`: a number that the function captures keeps the value that it
/// has at the recording. All weights must exist before the Step is made. For one thread at a time.
class Step {
 public:
  /// The results of `objective` are the loss, of one element, and further values to view. A function is recorded as
  /// that of Compiled is, on new tapes like `like`. `weights` are the parameters to train: Tape::parameter(weights,
  /// name) and their arrays. Gradients are recorded on the loss's tape. Throws as grad, Player and Optimizer do, and
  /// Error if no weight is reached or an option is out of range; with a function, the first call does.
  Step(const Objective& objective, const Store& weights, const OptimizerOptions& optimizer,
       const StepOptions& options = {}, const Tape& like = Tape(), Caller caller = Caller::here())
      : Step(objective, weights, std::vector<OptimizerGroup>{{"*", optimizer}}, options, like, caller) {}
  /// With groups of weights, as for Optimizer: Step(loss, weights, {{"*.bias", Sgd{}}, {"*", AdamW{}}}).
  template <std::size_t n>
  Step(const Objective& objective, const Store& weights, const OptimizerGroup (&groups)[n],
       const StepOptions& options = {}, const Tape& like = Tape(), Caller caller = Caller::here())
      : Step(objective, weights, std::vector<OptimizerGroup>(groups, groups + n), options, like, caller) {}
  Step(const Objective& objective, const Store& weights, const std::vector<OptimizerGroup>& groups,
       const StepOptions& options = {}, const Tape& like = Tape(), Caller caller = Caller::here());

  /// Makes an update and returns the loss before it. Random ops draw by the number of the update. Throws as
  /// Player::play and Optimizer::update do, and UpdateError if the loss or the norm of the gradients is not finite;
  /// then nothing has changed. Feeds are for a loss on a tape.
  double operator()(std::initializer_list<Feed> feeds, Caller caller = Caller::here()) {
    return update(feeds.begin(), feeds.size(), caller);
  }
  double operator()(const std::vector<Feed>& feeds, Caller caller = Caller::here()) {
    return update(feeds.data(), feeds.size(), caller);
  }
  /// The same with the arguments of a function: arrays and numbers.
  double operator()(const std::vector<ArrayOrNumber>& arguments, Caller caller = Caller::here());
  template <class List, class = std::enable_if_t<std::is_convertible<typename List::value_type, ArrayView>::value>>
  double operator()(const List& arguments, Caller caller = Caller::here()) {
    return (*this)(std::vector<ArrayOrNumber>(arguments.begin(), arguments.end()), caller);
  }

  std::int64_t updates() const;  ///< How many there were.
  double rate() const;           ///< The learning rate of the last update, in the last group; 0 before.
  double norm() const;           ///< The global norm of its gradients, before clipping; 0 before.
  /// A result of the last call, computed before its update; valid until the next one. Throws Error before the first.
  ArrayView view(std::size_t result) const;
  ArrayView view(const Var& result, Caller caller = Caller::here()) const;  ///< For a loss on a tape.
  const Player& player() const;                                             ///< The player of the last call.
  const Optimizer& optimizer() const;  ///< For its state: to continue from a checkpoint, write to these arrays.

 private:
  double update(const Feed* feeds, std::size_t count, const Caller& caller);
  struct Data;
  Owner<Data> data_;
};

}  // namespace xtape
