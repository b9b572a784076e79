#include "meter.hpp"

#include <algorithm>
#include <cmath>

#include "feeding.hpp"

namespace xtape::train {

Meter::Meter(Model& model) : model_(model), playing_(model.player_options()) {
  const std::vector<std::string> known = model.functions();
  for (std::size_t i = 0; i < functions.size(); ++i)
    has_[i] = std::find(known.begin(), known.end(), functions[i]) != known.end();
  has_[loss] = true;  // where it is missing, that is the error to be told
}

Meter::Measuring& Meter::of(const Batch& batch) {
  const NamedSizes sizes = decode::sizes_of(model_, functions[loss], batch);
  if (Measuring* known = measurings_.find([&](const Measuring& each) { return each.sizes == sizes; })) return *known;
  Measuring made;
  made.sizes = sizes;
  made.inputs = model_.inputs(made.tape, functions[loss], sizes);
  Vars outputs;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    if (!has_[i]) continue;
    made.results[i] = loss_of(model_, model_.record(made.tape, functions[i], made.inputs), functions[i]);
    outputs.push_back(made.results[i].sum);
    outputs.push_back(made.results[i].count);
  }
  made.player.emplace(made.tape, outputs, playing_);
  return measurings_.add(std::move(made));
}

void Meter::add(const Batch& batch) {
  Measuring& measuring = of(batch);
  measuring.player->play(decode::feeds_of(measuring.inputs, batch));
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
