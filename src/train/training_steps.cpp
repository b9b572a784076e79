#include "training_steps.hpp"

#include "xtape/grad.hpp"

namespace xtape::train {

namespace {
PlayerOptions playing(const TrainerOptions& options) {
  PlayerOptions playing;
  playing.threads = options.threads;
  playing.seed = options.seed;
  playing.profile = options.profile;
  playing.arena = make_arena();
  playing.outputs = make_output_pool();
  return playing;
}

FunctionCache<TrainingNotes>::Recording with_gradients(const Model& model, const NamedSizes& sizes) {
  Tape tape(Mode::train);
  const RecordedLoss recorded = record_loss(model, tape, sizes);
  const NamedVars weights = model.weights(tape);
  Vars by;
  for (const auto& weight : weights) by.push_back(weight.value);
  const Vars gradients = grad(recorded.loss.sum, by);
  NamedVars results = recorded.results;
  for (std::size_t i = 0; i < gradients.size(); ++i) results.add("gradient of " + weights[i].name, gradients[i]);
  return {tape, recorded.inputs, results, {recorded.loss, recorded.states, gradients}};
}
}  // namespace

TrainingSteps::TrainingSteps(Model& model, const TrainerOptions& options) : model_(model), steps_(64, playing(options)) {}

TrainingStep& TrainingSteps::of(const Batch& batch) {
  return *steps_.of({"loss", Mode::train, loss_sizes(model_, batch), "gradients"},
                    [&](const FunctionKey& key) { return with_gradients(model_, key.sizes); });
}

void TrainingSteps::forget_seconds() {
  for (const auto& step : steps_) step->player.forget_seconds();
}

std::vector<TrainingProfile::Step> TrainingSteps::profile() const {
  std::vector<TrainingProfile::Step> steps;
  for (const auto& each : steps_) {
    const Player& player = each->player;
    const std::int64_t plays = player.measured();
    const auto times = static_cast<double>(plays);
    for (std::size_t i = 0; plays > 0 && i < player.seconds().size(); ++i) {
      const Plan::Step& step = player.plan().steps[i];
      steps.push_back({step.op, step.part, plays, player.seconds()[i], step.flops * times, step.bytes * times});
    }
  }
  return steps;
}

std::vector<Plan::Fusion> TrainingSteps::fusions() const {
  const Player* most = nullptr;
  for (const auto& each : steps_)
    if (most == nullptr || each->player.measured() > most->measured()) most = &each->player;
  return most == nullptr ? std::vector<Plan::Fusion>() : most->plan().fusions;
}

}  // namespace xtape::train
