#include "evaluate.hpp"

namespace xtape {

Evaluation train::evaluate(Evaluator& evaluator, const Batches& batches, const std::function<void()>& between) {
  evaluator.restart();
  Batch batch = batches.blank();
  for (std::int64_t index = 0; index < batches.validation_batches(); ++index) {
    if (between) between();
    batches.validation(index, batch);
    evaluator.add(batch, batches.validation_continues(index));
  }
  return evaluator.measured();
}

Evaluation evaluate(Model& model, const Batches& batches) {
  train::Evaluator evaluator(model);
  return train::evaluate(evaluator, batches);
}

double sampled_loss(Model& model, const Batches& batches, std::int64_t count) {
  train::Evaluator evaluator(model);
  Batch batch = batches.blank();
  for (std::int64_t index = 0; index < count; ++index) {
    batches.validation_sample(static_cast<std::uint64_t>(index), batch);
    evaluator.add(batch);
  }
  return evaluator.measured().loss;
}

}  // namespace xtape
