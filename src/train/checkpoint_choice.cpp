// Which of a run's checkpoints is meant.
#include <algorithm>
#include <charconv>

#include "checkpoint.hpp"

namespace xtape {

CheckpointChoice CheckpointChoice::parse(const std::string& text) {
  const std::string average = "average:";
  if (text == "last") return {Kind::last, 1};
  if (text == "best") return {Kind::best, 1};
  CheckpointChoice choice = {Kind::average, 0};
  const char* end = text.data() + text.size();
  if (text.rfind(average, 0) == 0) {
    const auto [rest, failed] = std::from_chars(text.data() + average.size(), end, choice.count);
    if (failed == std::errc() && rest == end && choice.count >= 1) return choice;
  }
  throw Error("a checkpoint is last, best or average:N, not '" + text + "'");
}

namespace train {

namespace {
template <class T>
void add_to(std::vector<double>& sums, const Array& array) {
  sums.resize(static_cast<std::size_t>(array.count()));
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<double>(array.as<T>()[i]);
}

template <class T>
void write_mean(const std::vector<double>& sums, std::size_t count, Array array) {
  for (std::size_t i = 0; i < sums.size(); ++i) array.as<T>()[i] = static_cast<T>(sums[i] / static_cast<double>(count));
}

/// The mean of the weights that the files hold.
void load_average(Model& model, const std::vector<std::string>& files) {
  const std::vector<Store::Entry>& weights = model.weights().entries();
  std::vector<std::vector<double>> sums(weights.size());
  for (const std::string& file : files) {
    model.load_weights(file);
    for (std::size_t i = 0; i < weights.size(); ++i)
      model.dtype() == Dtype::float64 ? add_to<double>(sums[i], weights[i].array)
                                      : add_to<float>(sums[i], weights[i].array);
  }
  for (std::size_t i = 0; i < weights.size(); ++i)
    model.dtype() == Dtype::float64 ? write_mean<double>(sums[i], files.size(), weights[i].array)
                                    : write_mean<float>(sums[i], files.size(), weights[i].array);
}
}  // namespace

std::int64_t load_checkpoint(Model& model, const std::string& directory, const CheckpointChoice& choice) {
  const std::vector<std::string> found = checkpoints(directory);
  if (found.empty()) throw FileError(directory + " holds no checkpoint yet");
  const State last = read_state(found.back());
  const auto weights_of = [](const std::string& path) { return path + "/weights.safetensors"; };
  if (choice.kind == CheckpointChoice::Kind::last) {
    model.load_weights(weights_of(found.back()));
    return last.step;
  }
  if (choice.kind == CheckpointChoice::Kind::best) {
    const std::string best = directory + "/" + checkpoint_name(last.best_step);
    if (last.best_step < 0) throw FileError(directory + " holds no best checkpoint: nothing has been evaluated yet");
    if (std::find(found.begin(), found.end(), best) == found.end())
      throw FileError(directory + " does not hold the best checkpoint: step " + std::to_string(last.best_step) +
                      " was the best, and evaluations come more often than checkpoints (checkpoint_every)");
    model.load_weights(weights_of(best));
    return last.best_step;
  }
  if (found.size() < static_cast<std::size_t>(choice.count))
    throw FileError(directory + " holds " + std::to_string(found.size()) +
                    (found.size() == 1 ? " checkpoint, not the " : " checkpoints, not the ") +
                    std::to_string(choice.count) + " to be averaged");
  std::vector<std::string> files;
  for (auto each = found.end() - choice.count; each != found.end(); ++each) files.push_back(weights_of(*each));
  load_average(model, files);
  return last.step;
}

}  // namespace train
}  // namespace xtape
