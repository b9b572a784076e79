#include "train/trainer/privacy.hpp"

#include <cmath>

#include "train/run/run_parts.hpp"
#include "xtape/literal.hpp"
#include "xtape/ops.hpp"
#include "xtape/per_example.hpp"
#include "xtape/privacy.hpp"

namespace xtape::train {

Privacy::Privacy(const Model& model, const Batches& batches, const TrainerOptions& options)
    : options_(options.privacy), draws_(batches.draws()), epoch_batches_(batches.epoch_batches()), seed_(options.seed) {
  const PrivacyOptions& privacy = options.privacy;
  if (privacy.clip_norm == 0 && privacy.noise_multiplier == 0 && privacy.delta == 0) return;
  const auto wrong = [](const std::string& what) { throw Error("privacy: " + what); };
  if (!(privacy.clip_norm > 0 && std::isfinite(privacy.clip_norm)))
    wrong("clip_norm must be above 0 and finite, got " + to_string(Literal(privacy.clip_norm)));
  if (!(privacy.noise_multiplier >= 0 && std::isfinite(privacy.noise_multiplier)))
    wrong("noise_multiplier must be at least 0 and finite, got " + to_string(Literal(privacy.noise_multiplier)));
  if (!std::isfinite(privacy.noise_multiplier * privacy.clip_norm))
    wrong("noise_multiplier * clip_norm must be finite, got " + to_string(Literal(privacy.noise_multiplier)) + " * " +
          to_string(Literal(privacy.clip_norm)));
  if (!(privacy.delta > 0 && privacy.delta < 1))
    wrong("delta must be above 0 and below 1, got " + to_string(Literal(privacy.delta)));
  if (!options.updates.empty()) wrong("a training with several losses ('updates') cannot be private");
  if (options.precision == Precision::bf16)
    wrong("precision must be float32 or bf16x3: the norms of gradients of bf16 products are too small or too large");
  if (const std::vector<std::string> carried = carried_names(model, "loss"); !carried.empty())
    wrong("the rows of a batch must not depend on those of earlier batches, but function 'loss' of model '" +
          model.name() + "' has the carried state '" + carried[0] + "'");
  if (const std::vector<std::string> updated = updated_weights(model, options); !updated.empty())
    wrong("weights that training updates by statistics of the rows, without noise, reveal them: freeze '" + updated[0] +
          "', or use a norm of single rows, such as group_norm");
  const std::int64_t drawn = draws_.batches;
  if (drawn == 0) wrong("needs batches whose rows are drawn by chance, as RowBatches with the option draws has them");
  if (drawn != options.accumulate)
    wrong("an update must have one draw of " + std::to_string(drawn) + " batches, but accumulate is " +
          std::to_string(options.accumulate));
}

GradientNoise Privacy::noise(std::int64_t updates) const {
  return {options_.clip_norm * options_.noise_multiplier, seed_, static_cast<std::uint64_t>(updates)};
}

std::optional<double> Privacy::epsilon(std::int64_t updates) const {
  if (!on()) return {};
  PrivacyAccountant accountant;
  accountant.count(options_.noise_multiplier, draws_.rate(), updates);
  return accountant.epsilon(options_.delta);
}

UpdatePrivacy Privacy::of_updates() const {
  if (!on()) return {};
  return {options_.noise_multiplier, draws_.rate()};
}

void Privacy::check(const std::string& path, const State& state) const {
  // Epsilon is only valid if all updates have the same noise and rate, and if no two updates use the same draw.
  if (state.privacy != of_updates() || (on() && state.epoch_batches != epoch_batches_))
    throw FileError("checkpoint " + path + " is of a training with other privacy: 'privacy.noise_multiplier', the " +
                    "expected rows of an update (batch.size * batch.accumulate) and the number of rows of the " +
                    "training split must stay as they were");
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
    NamedVars batch;  // the arrays of one row
    for (std::size_t i = 0; i < recorded.inputs.size(); ++i) batch.add(recorded.inputs[i].name, expand_dims(row[i], 0));
    const Loss loss = loss_of(model, batch, model.record(tape, "loss", batch), "loss");
    const auto as_loss = [&](const Var& x) { return cast(reshape(x, {}), whole.sum.dtype()); };
    const Var count = as_loss(loss.count);
    return as_loss(loss.sum) / masked_fill(count, count == 0, 1) * as_loss(row.back());
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
