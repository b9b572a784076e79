#include <algorithm>
#include <cmath>
#include <numeric>

#include "order.hpp"
#include "xtape/decode.hpp"

namespace xtape {

namespace {
constexpr std::uint64_t sampling_stream = 5;

void check(const std::vector<double>& logits, const Sampling& sampling) {
  if (!(sampling.temperature >= 0)) throw Error("the temperature must be at least 0");
  if (sampling.top_k < 0) throw Error("top_k must be at least 0 (0: all tokens)");
  if (!(sampling.top_p > 0 && sampling.top_p <= 1)) throw Error("top_p must be in (0, 1]");
  for (const double logit : logits)
    if (std::isnan(logit) || logit == std::numeric_limits<double>::infinity())
      throw Error("the logits hold a NaN or infinity: nothing can be drawn from them");
  if (std::none_of(logits.begin(), logits.end(), [](double logit) { return std::isfinite(logit); }))
    throw Error("no logit is finite: nothing can be drawn from them");
}
}  // namespace

std::vector<double> sampling_probabilities(const std::vector<double>& logits, const Sampling& sampling) {
  check(logits, sampling);
  std::vector<double> probabilities(logits.size());
  const auto best = std::max_element(logits.begin(), logits.end());
  if (sampling.temperature == 0) {
    probabilities[static_cast<std::size_t>(best - logits.begin())] = 1;
    return probabilities;
  }
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  if (sampling.top_k > 0) order.resize(std::min(order.size(), static_cast<std::size_t>(sampling.top_k)));
  double total = 0;
  for (const std::size_t i : order) total += probabilities[i] = std::exp((logits[i] - *best) / sampling.temperature);
  // The token with which the sum reaches top_p is still in.
  double kept = 0;
  for (const std::size_t i : order) {
    if (kept >= sampling.top_p * total) {
      probabilities[i] = 0;
    } else {
      kept += probabilities[i];
    }
  }
  for (double& probability : probabilities) probability /= kept;
  return probabilities;
}

std::int32_t sample(const std::vector<double>& logits, const Sampling& sampling, std::uint64_t draw) {
  const std::vector<double> probabilities = sampling_probabilities(logits, sampling);
  constexpr std::uint64_t parts = std::uint64_t{1} << 53;
  const double point =
      static_cast<double>(draw_below(parts, sampling.seed, sampling_stream, draw)) / static_cast<double>(parts);
  double below = 0;
  std::int32_t last = 0;  // rounding may leave the sum a little under 1: then the last possible token
  for (std::size_t i = 0; i < probabilities.size(); ++i) {
    if (probabilities[i] == 0) continue;
    last = static_cast<std::int32_t>(i);
    below += probabilities[i];
    if (point < below) break;
  }
  return last;
}

}  // namespace xtape
