#include "meter.hpp"

#include <algorithm>
#include <cmath>

namespace xtape::train {

Meter::Meter(Model& model) : model_(model), playing_(model.player_options()) {
  const std::vector<std::string> known = model.functions();
  for (std::size_t i = 0; i < functions.size(); ++i)
    has_[i] = std::find(known.begin(), known.end(), functions[i]) != known.end();
  has_[loss] = true;  // where it is missing, that is the error to be told
}

Meter::Measuring& Meter::of(const Batch& batch) {
  const NamedSizes sizes = loss_sizes(model_, batch);
  const auto fits = [&](const Measuring& each) { return each.recorded.sizes == sizes; };
  if (Measuring* known = measurings_.find(fits)) return *known;
  Measuring made;
  made.recorded = record_loss(model_, made.tape, sizes);
  made.results[loss] = made.recorded.loss;
  for (const Measure each : {plain_loss, accuracy})
    if (has_[each])
      made.results[each] =
          loss_of(model_, model_.record(made.tape, functions[each], made.recorded.inputs), functions[each]);
  Vars outputs;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    if (!has_[i]) continue;
    outputs.push_back(made.results[i].sum);
    outputs.push_back(made.results[i].count);
  }
  for (const CarriedState& state : made.recorded.states) outputs.push_back(state.result);
  made.player.emplace(made.tape, outputs, playing_);
  return measurings_.add(std::move(made));
}

void Meter::add(const Batch& batch, bool continues) {
  Measuring& measuring = of(batch);
  const RecordedLoss& recorded = measuring.recorded;
  measuring.player->play(feeds_of(recorded.inputs, batch, recorded.states, continues ? &left_ : nullptr));
  keep(*measuring.player, recorded.states, left_);
  for (std::size_t i = 0; i < functions.size(); ++i) {
    if (!has_[i]) continue;
    sums_[2 * i] += measuring.player->scalar(measuring.results[i].sum);
    sums_[2 * i + 1] += measuring.player->scalar(measuring.results[i].count);
  }
}

Evaluation Meter::measured() const {
  if (sums_[1] == 0) throw Error("there is no target that counts to evaluate on");
  const auto mean = [&](Measure measure) { return sums_[2 * measure] / sums_[2 * measure + 1]; };
  Evaluation evaluation;
  evaluation.loss = mean(loss);
  evaluation.tokens = std::llround(sums_[1]);
  if (has_[plain_loss]) evaluation.perplexity = std::exp(mean(plain_loss));
  if (has_[accuracy]) evaluation.accuracy = mean(accuracy);
  return evaluation;
}

}  // namespace xtape::train
