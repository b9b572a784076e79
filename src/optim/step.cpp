#include "xtape/step.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/arrays/visit.hpp"
#include "functions/function_plans.hpp"
#include "optim/lbfgs.hpp"
#include "optim/optimizer.hpp"
#include "tape/calls.hpp"
#include "xtape/grad.hpp"
#include "xtape/literal.hpp"

namespace xtape {

namespace {
/// Gives groups without a rate the maximum rate of the schedule. The rates of groups are absolute.
std::vector<OptimizerGroup> with_rates(std::vector<OptimizerGroup> groups, const ScheduleOptions& schedule) {
  for (OptimizerGroup& group : groups) group.options.rate = group.options.rate.value_or(schedule.rate);
  return groups;
}
}  // namespace

struct Step::Data {
  Store weights;
  std::vector<OptimizerGroup> groups;
  StepOptions options;
  std::optional<Optimizer> optimizer = {};
  std::optional<LbfgsSearch> search = {};     // instead of the optimiser
  std::optional<FunctionPlan> recorded = {};  // for a loss on a tape
  std::optional<FunctionPlans> plans = {};    // or for a function
  FunctionPlan* last = nullptr;
  std::vector<ArrayView> gradients = {};
  double rate = 0, norm = 0;

  Data(const Store& the_weights, const std::vector<OptimizerGroup>& the_groups, const StepOptions& the_options,
       const Lbfgs* the_search)
      : weights(the_weights), groups(with_rates(the_groups, the_options.schedule)), options(the_options) {
    if (the_search != nullptr)
      search.emplace(weights, *the_search);
    else
      optimizer.emplace(weights, groups, options.player.threads);
    if (search && options.clip != 0) throw Error("Step: L-BFGS does not clip gradients: clip must be 0");
    if (options.schedule.epochs > 0 && options.schedule.steps == 0)
      throw Error("Step: set the steps of the schedule, not its epochs: a Step does not know how long an epoch is");
    if (!(options.schedule.rate > 0)) throw Error("Step: the rate of the schedule must be above 0");
    rate_at(options.schedule, 1);  // throws if an option is out of range
    if (!(options.clip >= 0)) throw Error("Step: clip must be at least 0 (0: gradients are not clipped)");
    gradients.resize(weights.size());
  }

  std::int64_t updates() const { return search ? search->updates() : optimizer->updates(); }
  bool is_frozen(std::size_t weight) const {
    return !search && groups[group_of(weights[weight].name, groups)].options.frozen;
  }

  /// Returns the results, and the gradient of the first result with respect to each weight. If a weight has no
  /// gradient, its var is empty.
  Vars with_gradients(const Vars& results) const {
    if (results.empty()) throw Error("Step: the objective has no result: the first one is the loss");
    Tape tape = results[0].tape();
    Vars by;
    for (std::size_t i = 0; i < weights.size(); ++i)
      if (!is_frozen(i)) by.push_back(tape.parameter(weights, weights[i].name));
    if (by.empty()) throw Error("Step: all weights are frozen, or there are none");
    GradOptions unused;
    unused.allow_unused = true;
    const Vars found = grad(results[0], by, unused);
    if (std::ranges::all_of(found, [](const Var& gradient) { return gradient.empty(); }))
      throw Error(
          "Step: the loss depends on none of the weights that existed when the Step was made: make all weights "
          "before it, as parameters of a tape, not constants");
    Vars outputs = results;
    for (std::size_t i = 0, next = 0; i < weights.size(); ++i) outputs.push_back(is_frozen(i) ? Var() : found[next++]);
    return outputs;
  }

  std::size_t results(const FunctionPlan& plan) const { return plan.outputs.size() - weights.size(); }

  /// Makes an update. `play` plays the loss and its gradients, and returns the plan.
  template <class Play>
  double update(const Play& play) {
    if (!search) return finish(play());
    const auto evaluate = [&](std::vector<double>& gradient) {
      last = &play();
      gradient.clear();
      for (std::size_t i = 0; i < weights.size(); ++i) {
        const Var& of_weight = last->outputs[results(*last) + i];
        const Array zeros_or_gradient = of_weight.empty() ? Array(weights[i].value.dtype(), weights[i].value.shape())
                                                          : Array(last->player.view(of_weight));
        visit_floats(zeros_or_gradient, [&](const auto* values) {
          gradient.insert(gradient.end(), values, values + zeros_or_gradient.count());
        });
      }
      return last->player.scalar(last->outputs[0]);
    };
    const double loss = search->update(evaluate, rate_at(options.schedule, updates() + 1) / options.schedule.rate);
    norm = search->norm();
    rate = search->length();
    return loss;
  }

  /// Runs after the play of `plan`. Checks the loss and updates the weights.
  double finish(FunctionPlan& plan) {
    last = &plan;
    const double loss = plan.player.scalar(plan.outputs[0]);
    const std::int64_t number = updates() + 1;
    const auto refuse = [&](const char* what, double value) {
      throw UpdateError("update " + std::to_string(number) + ": the " + what + " is " + to_string(Literal(value)) +
                        "; nothing is updated (find_failure of xtape/inspect.hpp finds the op at fault)");
    };
    if (!std::isfinite(loss)) refuse("loss", loss);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const Var& gradient = plan.outputs[results(plan) + i];
      gradients[i] = gradient.empty() ? ArrayView() : plan.player.view(gradient);
    }
    const double course = rate_at(options.schedule, number) / options.schedule.rate;
    norm = optimizer->update(gradients, course, 1, options.clip);
    if (!std::isfinite(norm)) refuse("norm of the gradients", norm);
    rate = course * *groups.back().options.rate;
    return loss;
  }
};

Step::Step(const Objective& objective, const Store& weights, const std::vector<OptimizerGroup>& groups,
           const StepOptions& options, const Tape& like, Caller caller)
    : Step(objective, weights, groups, options, like, caller, nullptr) {}

Step::Step(const Objective& objective, const Store& weights, const std::vector<OptimizerGroup>& groups,
           const StepOptions& options, const Tape& like, const Caller& caller, const Lbfgs* search)
    : data_(at_place(caller, [&] { return new Data(weights, groups, options, search); })) {
  Data* d = data_.get();  // the address does not change
  if (objective.function()) {
    const auto recording = [d, function = objective.function()](const Vars& inputs) {
      return d->with_gradients(function(inputs));
    };
    d->plans.emplace(recording, options.player, like);
    return;
  }
  at_place(caller, [&] {
    const Vars outputs = d->with_gradients(objective.results());
    d->recorded = plan_of(outputs[0].tape(), {}, {}, outputs, options.player);
  });
}

double Step::update(const Feed* feeds, std::size_t count, const Caller& caller) {
  Data& d = *data_;
  return at_place(caller, [&] {
    if (!d.recorded) throw Error("Step: a function takes arrays, not feeds: step({x, y})");
    return d.update([&]() -> FunctionPlan& {
      d.recorded->player.play(feeds, count, static_cast<std::uint64_t>(d.updates()), caller);
      return *d.recorded;
    });
  });
}

double Step::operator()(const ArraysOrNumbers& arguments, Caller caller) {
  Data& d = *data_;
  return at_place(caller, [&] {
    if (!d.plans) throw Error("Step: a loss on a tape takes feeds of its inputs: step({{x, batch}})");
    return d.update(
        [&]() -> FunctionPlan& { return d.plans->play(arguments.list(), static_cast<std::uint64_t>(d.updates())); });
  });
}

std::int64_t Step::updates() const {
  return data_->updates();
}
double Step::rate() const {
  return data_->rate;
}
double Step::norm() const {
  return data_->norm;
}

const Player& Step::player() const {
  if (data_->last == nullptr) throw Error("Step: there was no step yet");
  return data_->last->player;
}

ArrayView Step::view(std::size_t result) const {
  const Player& played = player();
  const std::size_t count = data_->results(*data_->last);
  if (result >= count)
    throw Error("Step: there is no result " + std::to_string(result) + ": the objective has " + std::to_string(count));
  return played.view(data_->last->outputs[result]);
}

ArrayView Step::view(const Var& result, Caller caller) const {
  return player().view(result, caller);
}

const Optimizer& Step::optimizer() const {
  if (!data_->optimizer) throw Error("Step: with L-BFGS there is no Optimizer: state() has the state");
  return *data_->optimizer;
}

const Store& Step::state() const {
  return data_->search ? data_->search->state() : optimizer().state();
}

}  // namespace xtape
