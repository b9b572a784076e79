#include "privacy.hpp"

#include <cmath>

#include "xtape/literal.hpp"
#include "xtape/ops.hpp"
#include "xtape/per_example.hpp"
#include "xtape/privacy.hpp"

namespace xtape::train {

void check_privacy(const Model& model, const Batches& batches, const TrainerOptions& options) {
  const PrivacyOptions& privacy = options.privacy;
  if (privacy.clip_norm == 0) return;
  const auto wrong = [](const std::string& what) { throw Error("privacy: " + what); };
  if (!(privacy.clip_norm > 0 && std::isfinite(privacy.clip_norm)))
    wrong("clip_norm must be above 0 and finite, got " + to_string(Literal(privacy.clip_norm)));
  if (!(privacy.noise_multiplier >= 0 && std::isfinite(privacy.noise_multiplier)))
    wrong("noise_multiplier must be at least 0 and finite, got " + to_string(Literal(privacy.noise_multiplier)));
  if (!(privacy.delta > 0 && privacy.delta < 1))
    wrong("delta must be above 0 and below 1, got " + to_string(Literal(privacy.delta)));
  if (options.precision == Precision::bf16)
    wrong("precision must be float32 or bf16x3: the norms of gradients of bf16 products are too small or too large");
  if (const std::vector<std::string> carried = carried_names(model, "loss"); !carried.empty())
    wrong("the rows of a batch must not depend on those of earlier batches, but function 'loss' of model '" +
          model.name() + "' has the carried state '" + carried[0] + "'");
  const std::int64_t drawn = batches.draws().batches;
  if (drawn == 0) wrong("needs batches whose rows are drawn by chance, as RowBatches with the option draws has them");
  if (drawn != options.accumulate)
    wrong("an update must have one draw of " + std::to_string(drawn) + " batches, but accumulate is " +
          std::to_string(options.accumulate));
}

double epsilon_of(const PrivacyOptions& privacy, const RowDraws& draws, std::int64_t updates) {
  PrivacyAccountant accountant;
  accountant.count(privacy.noise_multiplier, draws.rate(), updates);
  return accountant.epsilon(privacy.delta);
}

void clip_rows(const Model& model, Tape& tape, double clip_norm, const Vars& weights, RecordedLoss& recorded,
               Vars& gradients) {
  const Loss whole = recorded.loss;
  Vars inputs, reached;
  for (const auto& input : recorded.inputs) inputs.push_back(input.value);
  if (inputs.empty()) throw DefinitionError("privacy: function 'loss' of model '" + model.name() + "' has no inputs");
  const Var drawn = tape.input(drawn_rows, {inputs[0].shape().empty() ? 0 : inputs[0].shape()[0]});
  inputs.push_back(drawn);
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (!gradients[i].empty()) reached.push_back(weights[i]);
  const ExampleLoss loss_of_row = [&](const Vars& row) {
    NamedVars batch;  // of one row
    for (std::size_t i = 0; i < recorded.inputs.size(); ++i) batch.add(recorded.inputs[i].name, expand_dims(row[i], 0));
    const Loss loss = loss_of(model, model.record(tape, "loss", batch));
    const auto as_loss = [&](const Var& x) { return cast(reshape(x, {}), whole.sum.dtype()); };
    return as_loss(loss.sum) / maximum(as_loss(loss.count), 1) * as_loss(row.back());
  };
  const ClippedGradients clipped = clipped_gradients(loss_of_row, reached, inputs, clip_norm);
  std::size_t next = 0;
  for (Var& gradient : gradients)
    if (!gradient.empty()) gradient = clipped.gradients[next++];
  recorded.inputs.add(drawn_rows, drawn);
  recorded.loss = {sum(clipped.losses), sum(drawn)};
  recorded.results = {{"loss", recorded.loss.sum}, {"rows", recorded.loss.count}};
}

}  // namespace xtape::train
