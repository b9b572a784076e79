#include "train/trainer/training_steps.hpp"

#include <algorithm>

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
  playing.profile = options.profile;
  playing.trace = options.trace;
  playing.arena = make_arena();
  return playing;
}

FunctionCache<TrainingNotes>::Recording with_gradients(const Model& model, const NamedSizes& sizes,
                                                       const std::vector<std::string>& trained, double clip_norm) {
  Tape tape(Mode::train);
  RecordedLoss recorded = record_loss(model, tape, sizes);
  Vars by;
  for (const std::string& name : trained) by.push_back(model.weight(tape, name));
  Vars gradients = grad(recorded.loss.sum, by, {.allow_unused = true});
  if (std::ranges::all_of(gradients, [](const Var& gradient) { return gradient.empty(); }))
    throw DefinitionError("function 'loss' of model '" + model.name() + "' does not depend on any trained weight");
  if (clip_norm > 0) clip_rows(model, tape, clip_norm, by, recorded, gradients);
  NamedVars results = recorded.results;
  for (std::size_t i = 0; i < gradients.size(); ++i)
    if (!gradients[i].empty()) results.add("grad." + trained[i], gradients[i]);
  for (const auto& [name, var] : recorded.updates) results.add("update." + name, var);
  return {tape, recorded.inputs, results, {recorded.loss, recorded.states, recorded.updates, gradients}};
}
}  // namespace

TrainingSteps::TrainingSteps(Model& model, const TrainerOptions& options, const Store& trained)
    : model_(model),
      trained_(trained.names()),
      clip_norm_(options.privacy.clip_norm),
      steps_(64, player_options(options)) {}

TrainingStep& TrainingSteps::of(const BatchArrays& batch) {
  const auto planned = [&]() -> TrainingStep& {
    return *steps_.of({"loss", Mode::train, loss_sizes(model_, batch), "gradients"},
                      [&](const FunctionKey& key) { return with_gradients(model_, key.sizes, trained_, clip_norm_); });
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

}  // namespace xtape::train
