#include "loss.hpp"

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

void check_loss(const Model& model, const Batches& batches) {
  Tape tape(Mode::train);
  const NamedVars inputs = model.inputs(tape, "loss", decode::sizes_of(model, "loss", batches.blank()));
  loss_of(model, model.record(tape, "loss", inputs));
}

}  // namespace xtape::train
