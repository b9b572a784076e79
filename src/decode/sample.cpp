#include "sampler.hpp"

namespace xtape {

std::vector<double> sampling_probabilities(const std::vector<double>& logits, const Sampling& sampling) {
  decode::Sampler sampler(sampling);
  const auto& candidates = sampler.weigh(logits.data(), std::ssize(logits));
  double sum = 0;
  for (const auto& candidate : candidates) sum += candidate.weight;
  std::vector<double> probabilities(logits.size());
  for (const auto& candidate : candidates)
    probabilities[candidate.token] = candidate.weight / sum;
  return probabilities;
}

std::int32_t sample(const std::vector<double>& logits, const Sampling& sampling, std::uint64_t draw) {
  const auto classes = std::ssize(logits);
  return decode::Sampler(sampling).draw({logits.data(), Dtype::float64, Layout::dense({classes})}, draw);
}

}  // namespace xtape
