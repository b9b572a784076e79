#include "train/trainer/measures.hpp"

#include "base/messages/wording.hpp"

namespace xtape::train {

Measure measure_named(const std::string& name, bool has_perplexity) {
  if (name.empty()) return measure_named(has_perplexity ? "perplexity" : "loss");
  const std::string what = name.substr(0, name.find(" on "));
  const bool is_share = is_one_of("accuracy bleu exact_match", what);
  return {name, (is_share || what == "perplexity" ? "" : "validation_") + name, is_share};
}

std::vector<Measure> measures_of(const Evaluation& evaluation) {
  std::vector<Measure> measures;
  const std::string on = evaluation.set.empty() ? "" : " on " + evaluation.set;
  const auto add = [&](const std::string& name, const std::optional<double>& value) {
    if (!value) return;
    measures.push_back(measure_named(name + on));
    measures.back().value = *value;
  };
  add("loss", evaluation.loss);
  for (const LossReport& each : evaluation.losses)
    if (each.loss != "loss") measures.push_back({each.loss + on, "validation_" + each.loss + on, false, each.mean});
  add("perplexity", evaluation.perplexity);
  add("accuracy", evaluation.accuracy);
  add("bleu", evaluation.bleu);
  add("exact_match", evaluation.exact_match);
  for (const Evaluation& set : evaluation.sets)
    for (const Measure& each : measures_of(set)) measures.push_back(each);
  return measures;
}

}  // namespace xtape::train
