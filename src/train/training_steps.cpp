#include "training_steps.hpp"

#include <algorithm>

#include "feeding.hpp"
#include "xtape/grad.hpp"

namespace xtape::train {

namespace {
constexpr std::size_t most_shapes = 64;
}

TrainingSteps::TrainingSteps(Model& model, const TrainerOptions& options) : model_(model) {
  playing_.threads = options.threads;
  playing_.seed = options.seed;
  playing_.arena = make_arena();
  playing_.outputs = make_output_pool();
}

TrainingStep& TrainingSteps::of(const Batch& batch) {
  const NamedSizes sizes = decode::sizes_of(model_, "loss", batch);
  const auto found =
      std::find_if(steps_.begin(), steps_.end(), [&](const TrainingStep& each) { return each.sizes == sizes; });
  if (found != steps_.end()) {
    steps_.splice(steps_.begin(), steps_, found);
    return steps_.front();
  }
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
  steps_.push_front(std::move(step));
  if (steps_.size() > most_shapes) steps_.pop_back();
  return steps_.front();
}

}  // namespace xtape::train
