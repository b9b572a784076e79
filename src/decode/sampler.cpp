#include "decode/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/arrays/order.hpp"
#include "base/json/json_text.hpp"
#include "base/system/durable.hpp"
#include "base/system/files.hpp"
#include "kernels/table/kernels.hpp"

namespace xtape::decode {

namespace {
constexpr std::uint64_t sampling_stream = 5;
constexpr std::int64_t block_logits = 64;  // number of logits in a block; the maximum of each block is kept
constexpr std::int64_t first_look = 64;    // number of most probable tokens to try first; they often suffice for top_p
constexpr double coldest = 1e-30;          // a lower temperature would underflow to 0 in float

bool above(const Sampler::Candidate& a, const Sampler::Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
}
bool before(const Sampler::Candidate& a, const Sampler::Candidate& b) {
  return a.token < b.token;
}

/// Returns the temperature by which logits are divided, as a T that is neither 0 nor infinite.
template <class T>
T divisor(double temperature) {
  return static_cast<T>(std::clamp(temperature, coldest, static_cast<double>(std::numeric_limits<T>::max())));
}
}  // namespace

Sampler::Sampler(const Sampling& sampling) : sampling_(sampling) {
  if (!(sampling.temperature >= 0 && std::isfinite(sampling.temperature)))
    throw Error("the temperature must be at least 0, and finite");
  if (sampling.top_k < 0) throw Error("top_k must be at least 0 (0: all tokens)");
  if (!(sampling.top_p > 0 && sampling.top_p <= 1)) throw Error("top_p must be in (0, 1]");
}

double Sampler::weight_of(double logit) const {
  return kernels().numbers.exp((logit - top_) / std::max(sampling_.temperature, coldest));
}

double Sampler::sum_of_weights() const {
  double sum = 0;
  for (const Candidate& candidate : candidates_) sum += candidate.weight;
  return sum;
}

/// Finds the maxima of all blocks and the maximum of all logits. Throws Error for NaN and plus infinity.
template <class T>
void Sampler::look_at(const T* logits, std::int64_t classes) {
  if (kernels().of<T>().has_odd(logits, classes))
    throw Error("the logits contain NaN or infinity: no token can be drawn from them");
  maxima_.clear();
  for (std::int64_t first = 0; first < classes; first += block_logits) {
    const std::int64_t count = std::min(block_logits, classes - first);
    maxima_.push_back(static_cast<double>(kernels().of<T>().greatest(logits + first, count)));
  }
  top_ = -std::numeric_limits<double>::infinity();
  for (const double maximum : maxima_) top_ = std::max(top_, maximum);
  if (!std::isfinite(top_)) throw Error("no logit is finite: no token can be drawn from them");
}

template <class T>
void Sampler::take_all(const T* logits, std::int64_t classes) {
  T weights[block_logits];
  for (std::int64_t first = 0; first < classes; first += block_logits) {
    const std::int64_t count = std::min(block_logits, classes - first);
    kernels().of<T>().weights_of(logits + first, count, static_cast<T>(top_), divisor<T>(sampling_.temperature),
                                 weights);
    for (std::int64_t i = 0; i < count; ++i)
      if (weights[i] > 0)
        candidates_.push_back({static_cast<std::int32_t>(first + i), static_cast<double>(logits[first + i]),
                               static_cast<double>(weights[i])});
  }
}

/// Collects the `count` most probable tokens by falling probability. Leaves out tokens of probability 0.
template <class T>
void Sampler::take_best(const T* logits, std::int64_t classes, std::int64_t count) {
  // At least `count` blocks have a logit of at least `bound`, so the `count` largest logits are at least `bound`.
  double bound = std::numeric_limits<double>::lowest();
  if (count <= std::ssize(maxima_)) {
    ordered_ = maxima_;
    std::nth_element(ordered_.begin(), ordered_.begin() + count - 1, ordered_.end(), std::greater<>());
    bound = std::max(bound, ordered_[count - 1]);
  }
  candidates_.clear();
  for (std::size_t s = 0; s < maxima_.size(); ++s) {
    if (maxima_[s] < bound) continue;
    const std::int64_t first = static_cast<std::int64_t>(s) * block_logits;
    for (std::int64_t i = first; i < std::min(classes, first + block_logits); ++i)
      if (const auto logit = static_cast<double>(logits[i]); logit >= bound)
        candidates_.push_back({static_cast<std::int32_t>(i), logit, 0});
  }
  if (count < std::ssize(candidates_)) {
    std::nth_element(candidates_.begin(), candidates_.begin() + count, candidates_.end(), above);
    candidates_.resize(static_cast<std::size_t>(count));
  }
  std::ranges::sort(candidates_, above);
  for (Candidate& candidate : candidates_) candidate.weight = weight_of(candidate.logit);
}

template <class T>
double Sampler::weight_of_all(const T* logits, std::int64_t classes) const {
  return kernels().of<T>().sum_of_weights(logits, classes, static_cast<T>(top_), divisor<T>(sampling_.temperature));
}

/// Drops the candidates after the first one at which the sum of weights reaches `enough`. If the sum never reaches it,
/// drops none and returns false.
bool Sampler::cut_at(double enough) {
  double kept = 0;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    kept += candidates_[i].weight;
    if (kept < enough) continue;
    candidates_.resize(i + 1);
    return true;
  }
  return false;
}

template <class T>
const std::vector<Sampler::Candidate>& Sampler::weigh(const T* logits, std::int64_t classes) {
  look_at(logits, classes);
  candidates_.clear();
  if (takes_all(classes)) {
    take_all(logits, classes);
    return candidates_;  // in order
  }
  if (sampling_.temperature == 0) {
    const T* best = std::find(logits, logits + classes, static_cast<T>(top_));
    candidates_.push_back({static_cast<std::int32_t>(best - logits), top_, 1});
  } else if (takes_best(classes)) {
    take_best(logits, classes, sampling_.top_k);
    if (sampling_.top_p < 1) cut_at(sampling_.top_p * sum_of_weights());
  } else {
    const double enough = sampling_.top_p * weight_of_all(logits, classes);
    std::int64_t count = std::min(first_look, classes);
    take_best(logits, classes, count);
    while (!cut_at(enough) && count < classes) {
      count = std::min(8 * count, classes);
      take_best(logits, classes, count);
    }
  }
  std::ranges::sort(candidates_, before);
  return candidates_;
}
template const std::vector<Sampler::Candidate>& Sampler::weigh(const float*, std::int64_t);
template const std::vector<Sampler::Candidate>& Sampler::weigh(const double*, std::int64_t);

/// Draws from all tokens without collecting them, because there may be more than a hundred thousand. `share` is in [0,
/// 1).
template <class T>
std::int32_t Sampler::draw_from_all(const T* logits, std::int64_t classes, double share) {
  look_at(logits, classes);
  T weights[block_logits];
  const auto weigh_block = [&](std::int64_t first) {
    const std::int64_t count = std::min(block_logits, classes - first);
    kernels().of<T>().weights_of(logits + first, count, static_cast<T>(top_), divisor<T>(sampling_.temperature),
                                 weights);
    return count;
  };
  double sum = 0;
  sums_.clear();  // up to the end of each block
  for (std::int64_t first = 0; first < classes; first += block_logits) {
    const std::int64_t count = weigh_block(first);
    for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(weights[i]);
    sums_.push_back(sum);
  }
  const double point = share * sum;
  if (const auto end = std::ranges::upper_bound(sums_, point); end != sums_.end()) {
    const std::int64_t first = (end - sums_.begin()) * block_logits;
    double below = end == sums_.begin() ? 0 : *(end - 1);
    weigh_block(first);
    for (std::int64_t i = 0;; ++i)
      if (below += static_cast<double>(weights[i]); point < below) return static_cast<std::int32_t>(first + i);
  }
  return weigh(logits, classes).back().token;  // because of rounding, `point` is the sum
}

template <class T>
std::int32_t Sampler::draw(const T* logits, std::int64_t classes, double share) {
  if (takes_all(classes)) return draw_from_all(logits, classes, share);
  weigh(logits, classes);
  const double point = share * sum_of_weights();
  double below = 0;
  for (const Candidate& candidate : candidates_) {
    below += candidate.weight;
    if (point < below) return candidate.token;
  }
  return candidates_.back().token;  // because of rounding, the sum is slightly smaller than `point`
}

std::int32_t Sampler::draw(const ArrayView& logits, std::uint64_t draw, std::uint64_t stream) {
  const std::int64_t classes = count_of(logits.shape());
  constexpr std::uint64_t parts = std::uint64_t{1} << 53;
  const auto drawn = draw_below(parts, sampling_.seed, sampling_stream, draw + (stream << 32));
  const double share = static_cast<double>(drawn) / static_cast<double>(parts);
  return logits.dtype() == Dtype::float64 ? this->draw(logits.as<double>(), classes, share)
                                          : this->draw(logits.as<float>(), classes, share);
}

}  // namespace xtape::decode

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
