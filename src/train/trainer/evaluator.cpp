#include "train/trainer/evaluator.hpp"

#include <cmath>

#include "base/arrays/elements.hpp"
#include "base/messages/wording.hpp"

namespace xtape::train {

Evaluator::Evaluator(Model& model, const PlayerOptions& playing, std::function<void()> make_room)
    : model_(model), measuring_(64, playing, std::move(make_room)) {
  const std::vector<std::string> known = model.functions();
  for (std::size_t i = 0; i < functions.size(); ++i) has_[i] = contains(known, functions[i]);
  has_[loss] = true;  // required: if it is missing, recording it throws the error
}

void Evaluator::restart() {
  sums_.fill(0);
  failed_.reset();
}

Evaluator::Measuring::Recording Evaluator::record(const NamedSizes& sizes) const {
  Tape tape(Mode::eval);
  const RecordedLoss recorded = record_loss(model_, tape, sizes);
  Measured notes{{}, recorded.states};
  NamedVars played;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    if (!has_[i]) continue;
    const std::string name = functions[i];
    const Loss of =
        i == loss ? recorded.loss : loss_of(model_, recorded.inputs, model_.record(tape, name, recorded.inputs), name);
    notes.results[i] = of;
    played.add(name, of.sum);
    played.add("count of " + name, of.count);
  }
  for (const CarriedState& state : recorded.states) played.add("state " + state.name, state.result);
  return {tape, recorded.inputs, played, notes};
}

Evaluator::Sums Evaluator::play(std::size_t item, const BatchArrays& batch, bool continues) {
  auto& measuring = *measuring_.of({"loss", Mode::eval, loss_sizes(model_, batch), "measures"},
                                   [&](const FunctionKey& key) { return record(key.sizes); });
  const std::vector<CarriedState>& states = measuring.notes.states;
  const Store before = continues ? first_rows(left_, states) : Store();
  const std::vector<Feed> feeds = feeds_of(measuring.inputs, batch, states, continues ? &before : nullptr);
  try {
    measuring.player.play(feeds, 0);
  } catch (const Error&) {
    if (!folders.capsule.empty()) failed_ = {item, failed_play(measuring, feeds, 0)};
    throw;
  }
  Sums sums{};
  for (std::size_t i = 0; i < functions.size(); ++i) {
    if (!has_[i]) continue;
    sums[2 * i] = measuring.player.scalar(measuring.notes.results[i].sum);
    sums[2 * i + 1] = measuring.player.scalar(measuring.notes.results[i].count);
  }
  for (const CarriedState& state : states)
    sums[not_finite_states] += all_finite(measuring.player.view(state.result)) ? 0 : 1;
  if (what_is_not_finite(sums) != nullptr && !failed_) failed_ = {item, failed_play(measuring, feeds, 0)};
  keep(measuring.player, states, left_);
  return sums;
}

const char* Evaluator::what_is_not_finite(const Sums& sums) {
  for (std::size_t i = 0; i < functions.size(); ++i)
    if (!std::isfinite(sums[2 * i]) || !std::isfinite(sums[2 * i + 1])) return functions[i];
  return sums[not_finite_states] > 0 ? "carried state" : nullptr;
}

void Evaluator::add(const Sums& sums) {
  for (std::size_t i = 0; i < sums.size(); ++i) sums_[i] += sums[i];
}

void Evaluator::check(const Sums& sums, std::size_t item, ranks::RankGroup& group) const {
  if (const char* what = what_is_not_finite(sums))
    throw EvaluationError(
        not_finite_text(std::string(what) + " of " + name + ", in its batch " + std::to_string(item + 1) + ",",
                        failure_of(item), group, folders));
}

const FailedPlay* Evaluator::failure_of(std::size_t item) const {
  return failed_ && failed_->item == item ? &failed_->play : nullptr;
}

std::string Evaluator::saved_failure(std::size_t item) const {
  const FailedPlay* failed = failure_of(item);
  return failed != nullptr && failed->capsule ? save_failure(*failed, folders) : "";
}

Evaluation Evaluator::measured() const {
  if (sums_[1] == 0) throw Error("there is nothing to evaluate on: no target counts");
  const auto mean = [&](Measure measure) { return sums_[2 * measure] / sums_[2 * measure + 1]; };
  Evaluation evaluation;
  evaluation.loss = mean(loss);
  evaluation.tokens = std::llround(sums_[1]);
  if (has_[plain_loss]) evaluation.perplexity = std::exp(mean(plain_loss));
  if (has_[accuracy]) evaluation.accuracy = mean(accuracy);
  return evaluation;
}

}  // namespace xtape::train
