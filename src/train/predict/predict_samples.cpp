// Predictions in mode train: means and standard deviations of samples.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/arrays/visit.hpp"
#include "base/json/json_text.hpp"
#include "kernels/table/kernels.hpp"
#include "train/predict/predict.hpp"
#include "train/trainer/carried.hpp"

namespace xtape::train {

namespace {
// The samples that are played together. Samples of a row depend on it, because they are parts of the same plays.
constexpr std::int64_t samples_at_once = 64;

/// Returns `count` copies of row `row` of each array.
BatchArrays copies_of(const BatchArrays& rows, std::int64_t row, std::int64_t count) {
  BatchArrays copies;
  for (const auto& [name, array] : rows) {
    const Array one = part_of(array, 0, row, row + 1);
    Shape shape = one.shape();
    shape[0] = count;
    Array all(one.dtype(), shape);
    for (std::int64_t i = 0; i < count; ++i)
      std::memcpy(static_cast<std::byte*>(all.data()) + static_cast<std::size_t>(i) * one.bytes(), one.data(),
                  one.bytes());
    copies.add(name, all);
  }
  return copies;
}

/// Returns the elements as float64.
std::vector<double> numbers_of(const Array& array) {
  std::vector<double> numbers(static_cast<std::size_t>(array.count()));
  visit_elements(array, [&](const auto* elements) {
    std::transform(elements, elements + array.count(), numbers.begin(),
                   [](auto element) { return static_cast<double>(element); });
  });
  return numbers;
}

void softmax(double* row, std::int64_t count) {
  const double largest = *std::max_element(row, row + count);
  double sum = 0;
  for (double* each = row; each < row + count; ++each) sum += * each = kernels().numbers.exp(*each - largest);
  for (double* each = row; each < row + count; ++each) *each /= sum;
}

/// Removes the updates of weights from all blocks below `json`, and lets the lines of these blocks compute as in mode
/// eval: a hyper-parameter hides the name `training`.
void keep_statistics(Json& json) {
  if (json.is_object() && json.contains("update") && json.contains("weights")) {
    json.erase("update");
    if (json.dump().find("training") != std::string::npos) json["hyper"]["training"] = false;
  }
  if (json.is_structured())
    for (Json& each : json) keep_statistics(each);
}
}  // namespace

Model model_of_samples(const Model& model, std::uint64_t seed) {
  Json definition = JsonText(model.definition_text(), model.name(), JsonErrors::definition).root();
  keep_statistics(definition);
  ModelOptions options;
  options.dtype = model.dtype();
  options.ops = model.ops();
  options.initialise = false;
  Model made = Model::parse(definition.dump(2), options, model.name());
  made.use_weights(model.weights());
  PlayerOptions playing = model.player_options();
  playing.seed = seed;
  made.set_player_options(16, playing);
  return made;
}

namespace {
/// Means and sums of squared differences of samples of a result (Welford, 1962).
class Moments {
 public:
  explicit Moments(std::string name) : name_(std::move(name)) {}

  /// Adds samples [n, …].
  void add(const ArrayView& samples, bool probabilities) {
    shape_ = samples.shape();
    std::vector<double> numbers = numbers_of(Array(samples));
    const std::size_t width = numbers.size() / static_cast<std::size_t>(shape_[0]);
    mean_.resize(width);
    squares_.resize(width);
    for (double* sample = numbers.data(); sample < numbers.data() + numbers.size(); sample += width) {
      if (probabilities) softmax(sample, static_cast<std::int64_t>(width));
      ++count_;
      for (std::size_t i = 0; i < width; ++i) {
        const double before = sample[i] - mean_[i];
        mean_[i] += before / static_cast<double>(count_);
        squares_[i] += before * (sample[i] - mean_[i]);
      }
    }
  }

  /// Writes mean and deviation to row `row` of results for `rows` rows. Returns whether the samples differ.
  bool write(std::int64_t row, std::int64_t rows, SampledResults& results) const {
    Shape shape = shape_;
    shape[0] = rows;
    for (Store* store : {&results.mean, &results.deviation})
      if (!store->has(name_)) store->add(name_, Array(Dtype::float32, shape));
    const std::size_t at = static_cast<std::size_t>(row) * mean_.size();
    Array mean(results.mean.at(name_)), deviation(results.deviation.at(name_));
    bool varies = false;
    for (std::size_t i = 0; i < mean_.size(); ++i) {
      mean.as<float>()[at + i] = static_cast<float>(mean_[i]);
      deviation.as<float>()[at + i] = static_cast<float>(std::sqrt(squares_[i] / static_cast<double>(count_ - 1)));
      varies = varies || squares_[i] > 0;
    }
    return varies;
  }

 private:
  std::string name_;
  Shape shape_;
  std::int64_t count_ = 0;
  std::vector<double> mean_, squares_;
};
}  // namespace

void RowPredictor::play_samples(const std::string& function, const BatchArrays& rows, std::int64_t row,
                                const TakeSamples& take) const {
  const std::int64_t plays = (samples_.count - 1) / samples_at_once + 1;
  for (std::int64_t play = 0; play < plays; ++play) {
    const std::int64_t some = std::min(samples_at_once, samples_.count - play * samples_at_once);
    const BatchArrays copies = copies_of(rows, row, some);
    const auto playable = sampling_->player(function, Mode::train, sampling_->sizes(function, copies));
    playable->player.play(feeds_of(playable->inputs, copies),
                          (row_ + static_cast<std::uint64_t>(row)) * static_cast<std::uint64_t>(plays) +
                              static_cast<std::uint64_t>(play));
    for (std::size_t i = 0; i < playable->results.size(); ++i) {
      const auto& [name, var] = playable->results[i];
      const ArrayView samples = playable->player.view(var);
      if (samples.shape().empty() || samples.shape()[0] != some)
        throw Error("the result '" + name + "' of the function '" + function + "' is " + to_string(samples.shape()) +
                    " for " + std::to_string(some) + " rows: it must have one prediction for each");
      take(i, name, samples);
    }
  }
}

SampledResults RowPredictor::sampled(const std::string& function, const BatchArrays& rows, bool probabilities) const {
  const std::int64_t count = rows[0].value.shape()[0];
  SampledResults results;
  for (std::int64_t row = 0; row < count; ++row) {
    std::vector<Moments> moments;
    play_samples(function, rows, row, [&](std::size_t i, const std::string& name, const ArrayView& samples) {
      if (i == moments.size()) moments.emplace_back(name);
      moments[i].add(samples, probabilities);
    });
    for (const Moments& each : moments) varies_ = each.write(row, count, results) || varies_;
  }
  return results;
}

void RowPredictor::add_samples(const BatchArrays& rows, Predictions& made) const {
  const std::int64_t count = rows[0].value.shape()[0];
  if (logits_) {
    const SampledResults results = sampled("logits", rows, true);
    const Array &mean = results.mean[0].value, &deviation = results.deviation[0].value;
    const auto labels = std::ssize(run_.labels());
    if (mean.shape() != Shape{count, labels})
      throw Error("the function 'logits' returns " + to_string(mean.shape()) + " for " + std::to_string(count) +
                  " rows and " + std::to_string(labels) + " labels");
    made.names.insert(made.names.end(), {label_name(), "probability", "probability.std"});
    for (std::int64_t i = 0; i < count; ++i) {
      const float* row = mean.as<float>() + i * labels;
      const std::int64_t best = std::max_element(row, row + labels) - row;
      add_label(run_.labels()[static_cast<std::size_t>(best)], row[best], made.rows[static_cast<std::size_t>(i)]);
      made.rows[static_cast<std::size_t>(i)].push_back(text_of_probability(deviation.as<float>()[i * labels + best]));
    }
  }
  if (predict_) {
    const SampledResults results = sampled("predict", rows, false);
    add_numbers(results.mean, count, made);
    add_numbers(results.deviation, count, made, ".std");
  }
  row_ += static_cast<std::uint64_t>(count);
}

}  // namespace xtape::train
