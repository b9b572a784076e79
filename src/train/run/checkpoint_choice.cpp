// Chooses one of a run's checkpoints.
#include <charconv>

#include "base/arrays/visit.hpp"
#include "base/messages/wording.hpp"
#include "train/run/checkpoint.hpp"

namespace xtape {

CheckpointChoice CheckpointChoice::parse(const std::string& text) {
  const std::string average = "average:";
  if (text == "last") return {Kind::last, 1};
  if (text == "best") return {Kind::best, 1};
  const bool is_average = text.rfind(average, 0) == 0;
  CheckpointChoice choice = {is_average ? Kind::average : Kind::step, 0};
  const char* end = text.data() + text.size();
  const auto [rest, failed] = std::from_chars(text.data() + (is_average ? average.size() : 0), end, choice.count);
  if (failed == std::errc() && rest == end && choice.count >= 1) return choice;
  throw Error("a checkpoint must be last, best, average:N or the number of a step, not '" + text + "'");
}

namespace train {

namespace {
/// Sets the model's weights to the mean of the weights in the files, computed in double precision.
void load_average(Model& model, const std::vector<std::string>& files) {
  const Store& weights = model.weights();
  std::vector<std::vector<double>> sums(weights.size());
  for (const std::string& file : files) {
    model.load_weights(file);
    for (std::size_t i = 0; i < weights.size(); ++i)
      visit_floats(weights[i].value, [&](const auto* elements) {
        sums[i].resize(static_cast<std::size_t>(weights[i].value.count()));
        for (double& sum : sums[i]) sum += static_cast<double>(*elements++);
      });
  }
  for (std::size_t i = 0; i < weights.size(); ++i) {
    Array mean(weights[i].value);
    visit_floats(mean, [&]<class T>(T* elements) {
      for (const double sum : sums[i]) *elements++ = static_cast<T>(sum / static_cast<double>(files.size()));
    });
  }
}

std::int64_t load_from(const std::vector<std::string>& found, Model& model, const std::string& directory,
                       const CheckpointChoice& choice) {
  if (found.empty()) throw FileError(directory + " has no checkpoint yet");
  const auto weights_of = [](const std::string& path) { return path + "/weights.safetensors"; };
  State last;
  if (choice.kind == CheckpointChoice::Kind::last) {
    load_last(found, [&](const std::string& path) {
      last = read_state(path);
      model.load_weights(weights_of(path));
    });
    return last.step;
  }
  if (choice.kind == CheckpointChoice::Kind::step) {
    const std::string path = directory + "/" + checkpoint_name(choice.count);
    if (!contains(found, path))
      throw FileError(directory + " has no checkpoint of step " + std::to_string(choice.count) +
                      "; it has those of steps " +
                      joined(found, [](const std::string& each) { return std::to_string(step_of_checkpoint(each)); }));
    model.load_weights(weights_of(path));
    return choice.count;
  }
  last = read_state(found.back());
  if (choice.kind == CheckpointChoice::Kind::best) {
    const std::string best = directory + "/" + checkpoint_name(last.best_step);
    if (last.best_step < 0) throw FileError(directory + " has no best checkpoint: nothing has been evaluated yet");
    if (!contains(found, best))
      throw FileError(directory + " does not have the best checkpoint: step " + std::to_string(last.best_step) +
                      " was the best, but it has no checkpoint (see checkpoint_every)");
    model.load_weights(weights_of(best));
    return last.best_step;
  }
  if (found.size() < static_cast<std::size_t>(choice.count))
    throw FileError(directory + " has " + std::to_string(found.size()) +
                    (found.size() == 1 ? " checkpoint, fewer than the " : " checkpoints, fewer than the ") +
                    std::to_string(choice.count) + " to average");
  std::vector<std::string> files;
  for (auto each = found.end() - choice.count; each != found.end(); ++each) files.push_back(weights_of(*each));
  load_average(model, files);
  return last.step;
}
}  // namespace

std::int64_t load_checkpoint(Model& model, const std::string& directory, const CheckpointChoice& choice) {
  constexpr int most = 10;
  for (int attempt = 1;; ++attempt) {
    const std::vector<std::string> found = checkpoints(directory);
    try {
      return load_from(found, model, directory, choice);
    } catch (const Error&) {
      // If the list of checkpoints has changed, a training has replaced them during the read.
      if (attempt == most || checkpoints(directory) == found) throw;
    }
  }
}

}  // namespace train
}  // namespace xtape
