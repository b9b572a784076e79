#include "evaluate.hpp"

namespace xtape {

Evaluation train::evaluate(Meter& meter, const Batches& batches, const std::function<void()>& between) {
  meter.restart();
  Batch batch = batches.blank();
  for (std::int64_t index = 0; index < batches.validation_batches(); ++index) {
    if (between) between();
    batches.validation(index, batch);
    meter.add(batch, batches.validation_continues(index));
  }
  return meter.measured();
}

Evaluation evaluate(Model& model, const Batches& batches) {
  train::Meter meter(model);
  return train::evaluate(meter, batches);
}

double sampled_loss(Model& model, const Batches& batches, std::int64_t count) {
  train::Meter meter(model);
  Batch batch = batches.blank();
  for (std::int64_t index = 0; index < count; ++index) {
    batches.validation_sample(static_cast<std::uint64_t>(index), batch);
    meter.add(batch);
  }
  return meter.measured().loss;
}

}  // namespace xtape
