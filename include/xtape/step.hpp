/// Training steps. One call plays a loss and its gradients, and updates the weights.
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

/// The objective of a step: a loss on a tape, or a function that records a loss. Converts from both.
class Objective {
 public:
  Objective(const Var& loss) : results_{loss} {}                        // NOLINT: converts by intent
  Objective(const Vars& results) : results_(results) {}                 // NOLINT: the first is the loss
  Objective(std::initializer_list<Var> results) : results_(results) {}  // NOLINT: the same
  template <class F,
            class = std::enable_if_t<!std::is_convertible<F, Var>::value && !std::is_convertible<F, Vars>::value>>
  Objective(F function) : function_(Compiled::function_of(std::move(function))) {}  // NOLINT: converts by intent

  const Vars& results() const { return results_; }                  ///< For a loss on a tape. Otherwise empty.
  const Compiled::Function& function() const { return function_; }  ///< For a function. Otherwise null.

 private:
  Vars results_;
  Compiled::Function function_;
};

/// Options of a Step.
struct StepOptions {
  /// The learning rate schedule. If the optimiser (or a group) has its own rate, this rate replaces the `rate` of the
  /// schedule.
  ScheduleOptions schedule = {};
  double clip = 0;            ///< The global norm to which gradients are clipped. 0: no clipping.
  PlayerOptions player = {};  ///< Threads, seed, precision, memory … The optimiser uses the same number of threads.
};

/// L-BFGS (Nocedal, 1980), as torch.optim.LBFGS. An update plays the loss several times with the same feeds, until the
/// gradient or a change is small, or a limit is reached. The state takes 16 bytes per element of the weights and update
/// of the history.
struct Lbfgs {
  double rate = 1;                   ///< The first length of a step, or with strong_wolfe the first that is tried.
  std::int64_t iterations = 20;      ///< The most changes of direction in an update.
  std::int64_t plays = 0;            ///< The most plays in an update. 0: 5 / 4 of the iterations.
  double gradient_tolerance = 1e-7;  ///< An update ends if no element of the gradient is larger.
  double change_tolerance = 1e-9;    ///< An update ends if no weight, or the loss, changes by more.
  std::int64_t history = 100;        ///< The number of changes of weights and gradients that are kept.
  bool strong_wolfe = true;          ///< Whether a line search finds the length of each step.
};

/// A training step: plays a loss and its gradients with respect to weights, and updates the weights.
///
///   Step step(loss, weights, AdamW{.rate = 1e-3});  // a loss that is recorded on a tape
///   double before = step({{x, batch}, {y, labels}});
///
///   // Or a function that records the loss. Each batch size has its own plan:
///   Step step([&](Var x, Var y) { return mean(square(f(x) - y)); }, weights, AdamW{});
///   for (auto [bx, by] : batches(32, seed, x, y)) step({bx, by});
///
/// Weights that the loss does not depend on stay unchanged. A number that the function captures keeps the value that it
/// has at record time. A number that changes during the training, such as the weight of a loss term, must therefore be
/// an argument: `step({bx, by, 0.5})`. All weights must exist before the Step is made. Only one thread at a time may
/// use a step.
class Step {
 public:
  /// The first result of `objective` is the loss, which has one element. The other results are values to view. A
  /// function is recorded in the same way as by Compiled, on new tapes with the mode, default dtype and ops of `like`.
  /// `weights` contains the arrays to train. The loss must read them as parameters: Tape::parameter(weights, name).
  /// Gradients are recorded on the loss's tape. Throws Error if the loss depends on none of the weights or an option is
  /// out of range. Errors of grad, Player and Optimizer propagate. With a function, the first call throws these errors.
  Step(const Objective& objective, const Store& weights, const OptimizerOptions& optimizer,
       const StepOptions& options = {}, const Tape& like = Tape(), Caller caller = Caller::here())
      : Step(objective, weights, std::vector<OptimizerGroup>{{"*", optimizer}}, options, like, caller) {}
  /// The same with groups of weights, as in Optimizer: Step(loss, weights, {{"*.bias", Sgd{}}, {"*", AdamW{}}}).
  template <std::size_t n>
  Step(const Objective& objective, const Store& weights, const OptimizerGroup (&groups)[n],
       const StepOptions& options = {}, const Tape& like = Tape(), Caller caller = Caller::here())
      : Step(objective, weights, std::vector<OptimizerGroup>(groups, groups + n), options, like, caller) {}
  Step(const Objective& objective, const Store& weights, const std::vector<OptimizerGroup>& groups,
       const StepOptions& options = {}, const Tape& like = Tape(), Caller caller = Caller::here());

  /// The same with L-BFGS for all weights. Gradients are not clipped, so `clip` must be 0. The rate of
  /// `options.schedule` is a factor of Lbfgs::rate, relative to its `rate`.
  template <class Search, class = std::enable_if_t<std::is_same<Search, Lbfgs>::value>>
  Step(const Objective& objective, const Store& weights, const Search& search, const StepOptions& options = {},
       const Tape& like = Tape(), Caller caller = Caller::here())
      : Step(objective, weights, {}, options, like, caller, &search) {}

  /// Makes an update and returns the loss before the update. The number of the update is the random step. Give feeds if
  /// the objective is a loss on a tape. Throws UpdateError if the loss or the norm of the gradients is not finite.
  /// Errors of Player::play and Optimizer::update propagate. After an error, nothing has changed.
  double operator()(std::initializer_list<Feed> feeds, Caller caller = Caller::here()) {
    return update(feeds.begin(), feeds.size(), caller);
  }
  double operator()(const std::vector<Feed>& feeds, Caller caller = Caller::here()) {
    return update(feeds.data(), feeds.size(), caller);
  }
  /// The same with the arguments of a function: arrays and numbers.
  double operator()(const ArraysOrNumbers& arguments, Caller caller = Caller::here());

  std::int64_t updates() const;  ///< The number of updates.
  double rate() const;  ///< The learning rate of the last update, in the last group. 0 before the first update.
  /// The global norm of the gradients of the last update, before clipping. 0 before the first update.
  double norm() const;
  /// A result of the last call, computed before its update. Valid until the next call. Throws Error before the first
  /// call.
  ArrayView view(std::size_t result) const;
  ArrayView view(const Var& result, Caller caller = Caller::here()) const;  ///< For a loss on a tape.
  const Player& player() const;                                             ///< The player of the last call.
  /// The optimiser. To continue from a checkpoint, write to the arrays of its state. Throws Error with L-BFGS.
  const Optimizer& optimizer() const;
  /// The state of the optimiser or of L-BFGS, to save, and to continue by writing to its arrays.
  const Store& state() const;

 private:
  Step(const Objective& objective, const Store& weights, const std::vector<OptimizerGroup>& groups,
       const StepOptions& options, const Tape& like, const Caller& caller, const Lbfgs* search);
  double update(const Feed* feeds, std::size_t count, const Caller& caller);
  struct Data;
  Owner<Data> data_;
};

}  // namespace xtape
