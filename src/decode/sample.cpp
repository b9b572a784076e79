#include <limits>

#include "base/files/durable.hpp"
#include "base/files/files.hpp"
#include "base/json/json_text.hpp"
#include "decode/sampler.hpp"

namespace xtape {

std::vector<double> sampling_probabilities(const std::vector<double>& logits, const Sampling& sampling) {
  decode::Sampler sampler(sampling);
  const auto& candidates = sampler.weigh(logits.data(), std::ssize(logits));
  double sum = 0;
  for (const auto& candidate : candidates) sum += candidate.weight;
  std::vector<double> probabilities(logits.size());
  for (const auto& candidate : candidates) probabilities[candidate.token] = candidate.weight / sum;
  return probabilities;
}

Sampling published_sampling(const std::string& folder, const Sampling& otherwise) {
  const std::string path = folder + "/generation_config.json";
  if (!path_exists(path)) return otherwise;
  const JsonNode config(read_file(path), path, JsonErrors::file, JsonNumbers::any);
  if (!config.is_object()) config.fail("an object belongs here");
  Sampling sampling = otherwise;
  const auto given = [&](const char* key) { return config.has(key) && !config.at(key).is_null(); };
  if (given("temperature")) sampling.temperature = config.at("temperature").number();
  if (given("top_k")) sampling.top_k = config.at("top_k").integer(0, std::numeric_limits<std::int64_t>::max());
  if (given("top_p")) sampling.top_p = config.at("top_p").number();
  if (!(sampling.temperature >= 0)) config.at("temperature").fail("the temperature must be at least 0");
  if (!(sampling.top_p > 0 && sampling.top_p <= 1)) config.at("top_p").fail("\"top_p\" must be above 0 and at most 1");
  if (given("do_sample") && !config.at("do_sample").flag()) sampling.temperature = 0;
  return sampling;
}

std::int32_t sample(const std::vector<double>& logits, const Sampling& sampling, std::uint64_t draw) {
  const auto classes = std::ssize(logits);
  return decode::Sampler(sampling).draw({logits.data(), Dtype::float64, Layout::dense({classes})}, draw);
}

}  // namespace xtape
