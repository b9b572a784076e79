// Code that only programs with groups link: options by kind, and the check of patterns.
#include <algorithm>
#include <set>

#include "base/messages/wording.hpp"
#include "optim/optimizer.hpp"

namespace xtape {

namespace {
using Kind = OptimizerOptions::Kind;

/// Returns the options of Adam and AdamW.
template <class Given>
OptimizerOptions adam_options(Kind kind, const Given& given) {
  return {.kind = kind,
          .beta1 = given.beta1,
          .beta2 = given.beta2,
          .epsilon = given.epsilon,
          .weight_decay = given.weight_decay,
          .decay_all = given.decay_all,
          .eight_bits = given.eight_bits,
          .rate = given.rate};
}

/// Returns the names of weights, and likely patterns for them: "h.0.attn.bias", "h.*.attn.bias", "*.bias".
std::vector<std::string> likely_patterns(const Store& weights) {
  std::set<std::string> patterns;
  for (const Store::Entry& entry : weights) {
    patterns.insert(entry.name);
    std::string starred;
    for (std::size_t at = 0; at <= entry.name.size();) {
      const std::size_t dot = std::min(entry.name.find('.', at), entry.name.size());
      const std::string step = entry.name.substr(at, dot - at);
      const bool number = !step.empty() && step.find_first_not_of("0123456789") == std::string::npos;
      starred += (at == 0 ? "" : ".") + (number ? "*" : step);
      if (dot < entry.name.size()) patterns.insert("*" + entry.name.substr(dot));
      at = dot + 1;
    }
    patterns.insert(starred);
  }
  return {patterns.begin(), patterns.end()};
}
}  // namespace

Sgd::operator OptimizerOptions() const {
  return {.kind = Kind::sgd,
          .momentum = momentum,
          .nesterov = nesterov,
          .weight_decay = weight_decay,
          .decay_all = decay_all,
          .rate = rate};
}
Adam::operator OptimizerOptions() const {
  return adam_options(Kind::adam, *this);
}
AdamW::operator OptimizerOptions() const {
  return adam_options(Kind::adamw, *this);
}
Lion::operator OptimizerOptions() const {
  return {.kind = Kind::lion,
          .beta1 = beta1,
          .beta2 = beta2,
          .weight_decay = weight_decay,
          .decay_all = decay_all,
          .rate = rate};
}
RmsProp::operator OptimizerOptions() const {
  return {.kind = Kind::rmsprop,
          .momentum = momentum,
          .epsilon = epsilon,
          .weight_decay = weight_decay,
          .decay_all = decay_all,
          .alpha = alpha,
          .centered = centered,
          .rate = rate};
}
Adafactor::operator OptimizerOptions() const {
  return {.kind = Kind::adafactor,
          .weight_decay = weight_decay,
          .decay_all = decay_all,
          .beta2_decay = beta2_decay,
          .least_scale = least_scale,
          .most_change = most_change,
          .rate = rate};
}
Muon::operator OptimizerOptions() const {
  return {.kind = Kind::muon,
          .momentum = momentum,
          .nesterov = nesterov,
          .beta1 = beta1,
          .beta2 = beta2,
          .epsilon = epsilon,
          .weight_decay = weight_decay,
          .decay_all = decay_all,
          .iterations = iterations,
          .match_adamw = match_adamw,
          .rate = rate};
}
Frozen::operator OptimizerOptions() const {
  return {.frozen = true};
}

std::string nearest_pattern(const std::string& pattern, const Store& weights) {
  if (weights.empty())
    return ": there are no weights yet. Parameters make theirs when a program first asks for them: record the program "
           "on a tape of its own before, as `f(p, tape.input(\"x\", shape))`";
  const std::string meant = did_you_mean(pattern, likely_patterns(weights));
  return !meant.empty() ? meant : "; its names are like '" + weights[0].name + "'";
}

void check_patterns(const Store& weights, const std::vector<OptimizerGroup>& groups) {
  for (const OptimizerGroup& group : groups) {
    const auto matched = [&](const Store::Entry& entry) { return matches_pattern(entry.name, group.weights); };
    if (std::ranges::none_of(weights, matched))
      throw Error("optimizer: no weight matches '" + group.weights + "'" + nearest_pattern(group.weights, weights));
  }
}

Optimizer::Optimizer(InGroups, const Store& weights, const std::vector<OptimizerGroup>& groups, int threads)
    : data_(new Data(weights, groups, threads)) {
  check_patterns(weights, groups);
}

}  // namespace xtape
