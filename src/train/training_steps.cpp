#include "training_steps.hpp"

#include "feeding.hpp"
#include "xtape/grad.hpp"

namespace xtape::train {

TrainingSteps::TrainingSteps(Model& model, const TrainerOptions& options) : model_(model) {
  playing_.threads = options.threads;
  playing_.seed = options.seed;
  playing_.arena = make_arena();
  playing_.outputs = make_output_pool();
}

TrainingStep& TrainingSteps::of(const Batch& batch) {
  const NamedSizes sizes = decode::sizes_of(model_, "loss", batch);
  if (TrainingStep* known = steps_.find([&](const TrainingStep& each) { return each.sizes == sizes; })) return *known;
  TrainingStep step;
  step.sizes = sizes;
  step.inputs = model_.inputs(step.tape, "loss", sizes);
  step.loss = loss_of(model_, model_.record(step.tape, "loss", step.inputs));
  Vars weights;
  for (const auto& [name, var] : model_.weights(step.tape)) weights.push_back(var);
  step.gradients = grad(step.loss.sum, weights);
  Vars outputs = {step.loss.sum, step.loss.count};
  outputs.insert(outputs.end(), step.gradients.begin(), step.gradients.end());
  step.player.emplace(step.tape, outputs, playing_);
  return steps_.add(std::move(step));
}

}  // namespace xtape::train
