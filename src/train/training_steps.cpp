#include "training_steps.hpp"

#include "xtape/grad.hpp"

namespace xtape::train {

TrainingSteps::TrainingSteps(Model& model, const TrainerOptions& options) : model_(model) {
  playing_.threads = options.threads;
  playing_.seed = options.seed;
  playing_.profile = options.profile;
  playing_.arena = make_arena();
  playing_.outputs = make_output_pool();
}

TrainingStep& TrainingSteps::of(const Batch& batch) {
  const NamedSizes sizes = loss_sizes(model_, batch);
  const auto fits = [&](const TrainingStep& each) { return each.recorded.sizes == sizes; };
  if (TrainingStep* known = steps_.find(fits)) return *known;
  TrainingStep step;
  step.recorded = record_loss(model_, step.tape, sizes);
  Vars weights;
  for (const auto& [name, var] : model_.weights(step.tape)) weights.push_back(var);
  step.gradients = grad(step.recorded.loss.sum, weights);
  Vars outputs = {step.recorded.loss.sum, step.recorded.loss.count};
  outputs.insert(outputs.end(), step.gradients.begin(), step.gradients.end());
  for (const CarriedState& state : step.recorded.states) outputs.push_back(state.result);
  step.player.emplace(step.tape, outputs, playing_);
  return steps_.add(std::move(step));
}

void TrainingSteps::forget_seconds() {
  for (TrainingStep& step : steps_.all()) step.player->forget_seconds();
}

std::vector<TrainingProfile::Step> TrainingSteps::profile() const {
  std::vector<TrainingProfile::Step> steps;
  for (const TrainingStep& each : steps_.all()) {
    const Player& player = *each.player;
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
  for (const TrainingStep& each : steps_.all())
    if (most == nullptr || each.player->measured() > most->measured()) most = &*each.player;
  return most == nullptr ? std::vector<Plan::Fusion>() : most->plan().fusions;
}

}  // namespace xtape::train
