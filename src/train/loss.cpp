#include "loss.hpp"

#include <algorithm>

#include "feeding.hpp"

namespace xtape::train {

Loss loss_of(const Model& model, const NamedVars& results, const std::string& function) {
  const auto scalar = [](const Var& var) { return count_of(var.shape()) == 1; };
  if (results.size() != 2 || !scalar(results[0].second) || !scalar(results[1].second) ||
      (function == "loss" && !is_floating(results[0].second.dtype())))
    throw DefinitionError("function '" + function + "' of model '" + model.name() +
                          "' must give two results of one element: a sum over the targets, and the count of what was "
                          "summed, as cross_entropy does");
  return {results[0].second, results[1].second};
}

namespace {
void record_loss(const Model& model, const Batch& batch) {
  Tape tape(Mode::train);
  const NamedVars inputs = model.inputs(tape, "loss", decode::sizes_of(model, "loss", batch));
  loss_of(model, model.record(tape, "loss", inputs));
}
}  // namespace

void check_loss(const Model& model, const Batches& batches) {
  Batch batch = batches.blank();
  record_loss(model, batch);
  std::vector<std::int64_t> longest;
  for (const Batch::Field& field : batch.fields) longest.push_back(field.array.shape()[1]);
  const auto check_longer = [&] {
    bool longer = false;
    for (std::size_t i = 0; i < longest.size(); ++i) {
      const std::int64_t columns = batch.fields[i].array.shape()[1];
      longer = longer || columns > longest[i];
      longest[i] = std::max(longest[i], columns);
    }
    if (longer) record_loss(model, batch);
  };
  for (std::int64_t index = 0; index < batches.epoch_batches(); ++index) {
    batches.training(static_cast<std::uint64_t>(index), batch);
    check_longer();
  }
  for (std::int64_t index = 0; index < batches.validation_batches(); ++index) {
    batches.validation(index, batch);
    check_longer();
  }
}

}  // namespace xtape::train
