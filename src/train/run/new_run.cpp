#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/json/json_text.hpp"
#include "base/system/durable.hpp"
#include "train/recipe/recipe_parts.hpp"
#include "train/run/run_parts.hpp"
#include "train/run/samples.hpp"
#include "train/trainer/carried.hpp"
#include "train/trainer/loss.hpp"
#include "train/trainer/observed_steps.hpp"
#include "train/trainer/turns.hpp"

namespace xtape::train {

namespace {
/// Returns the text of the run's recipe.json, which refers to the run's own copy of the definition.
std::string text_in_run(const Recipe& recipe, const Batches& batches, const std::vector<ArrayInput>& inputs) {
  Json json = JsonText(recipe.text, recipe.name, JsonErrors::definition).root();
  json["definition"] = "definition.json";
  json.erase("changes");  // if the recipe is that of another run
  if (recipe.original.empty() && !recipe.definition.empty())
    json["original"] = std::filesystem::absolute(find_definition(recipe.definition)).lexically_normal().string();
  kind_of(recipe.data).complete(recipe, batches, json["data"]);
  for (const ArrayInput& input : inputs)  // lists the columns of "*", because later tables may have others
    if (input.list) json["data"]["inputs"][input.name] = input.columns;
  return indented(json);
}

void check_new(const std::string& directory) {
  if (path_exists(directory)) throw FileError(directory + " already exists");
}

/// Creates the temporary folder `beside` for the run `directory`, and locks it. While this process holds the lock, no
/// other process can create the run.
FileLock locked(const std::string& beside, const std::string& directory) {
  try {
    // An earlier attempt is recognised by two facts. It has a lock, which is the first file written. It has no metrics,
    // which are written after the rename.
    if (path_exists(beside) && !names_in(beside).empty() &&
        (!path_exists(beside + "/" + lock_file) || path_exists(beside + "/metrics.jsonl")))
      throw FileError(beside + " is needed to create the run, but holds other files: move it away");
    make_folders(beside);
    return FileLock(beside + "/" + lock_file, directory);
  } catch (const FileError&) {
    // Another process may have renamed the folder at any point.
    check_new(directory);
    throw;
  }
}

/// Writes the files of a new run except metrics and checkpoints. Removes the files of an earlier attempt from the
/// folder.
void write_files(const Model& model, const Recipe& recipe, const Tokenizers& tokenizers, const Batches& batches,
                 const std::vector<ArrayInput>& inputs, const std::string& folder) {
  for (const std::string& name : names_in(folder))
    if (name != lock_file) remove_if_possible(folder + "/" + name);
  make_folders(folder + "/" + checkpoints_folder);
  write_model(model, recipe, tokenizers.labels, folder);
  save_tokenizers(tokenizers, folder);
  write_file(folder + "/recipe.json", text_in_run(recipe, batches, inputs));
}
}  // namespace

Model checked_model(const Recipe& recipe, const Tokenizers& tokenizers, const Batches& batches) {
  Model model = new_model(recipe, tokenizers, batches, false);
  const Turns turns(recipe.trainer);
  for (const Turn& turn : turns.all())  // throws if a schedule does not fit model or data
    schedule_of(turn.schedule, recipe.trainer, model.hyper(), batches.epoch_batches());
  check_losses(model, turns.functions(), batches);
  check_labels(model, turns.functions()[0], batches.blank(), tokenizers.labels);
  check_watched(model, turns.functions()[0], batches.blank(), recipe.fit.watch);
  check_samples(model, recipe, tokenizers, batches);
  return model;
}

namespace {
/// A few batches of a data set: all of them are its validation split, and the first is the only training batch.
class FewBatches : public Batches {
 public:
  FewBatches(const Batches& all, std::vector<BatchArrays> few, const BatchArrays& blank)
      : all_(all), few_(std::move(few)), blank_(blank) {}
  std::int64_t rows() const override { return all_.rows(); }
  std::int64_t columns() const override { return all_.columns(); }
  BatchArrays blank() const override { return blank_; }
  std::int64_t epoch_batches() const override { return all_.epoch_batches(); }
  RowDraws draws() const override { return all_.draws(); }
  void training(std::uint64_t, BatchArrays& batch) const override { batch = few_[0]; }
  std::int64_t validation_batches() const override { return std::ssize(few_); }
  void validation(std::int64_t index, BatchArrays& batch) const override { batch = few_[index]; }
  void validation_sample(std::uint64_t, BatchArrays& batch) const override { batch = few_[0]; }

 private:
  const Batches& all_;
  std::vector<BatchArrays> few_;
  BatchArrays blank_;
};

/// A row of a batch. Null batches are empty.
struct Found {
  BatchArrays batch;
  std::int64_t row = 0;
};

/// Finds the first row of the data, and for each array of integers a row with its largest number, which is the most
/// likely to be out of range of the model.
class Extremes {
 public:
  void add(const BatchArrays& batch) {
    if (found_.empty()) found_.push_back({copy_of(batch), 0});
    for (const auto& [name, array] : batch) {
      if (array.dtype() != Dtype::int64 || array.count() == 0) continue;
      const auto* begin = array.as<std::int64_t>();
      const auto* largest = std::max_element(begin, begin + array.count());
      const auto known = largest_.find(name);
      if (known != largest_.end() && known->second.first >= *largest) continue;
      const std::int64_t row = (largest - begin) / (array.count() / array.shape()[0]);
      const std::size_t place = known == largest_.end() ? found_.size() : known->second.second;
      if (place == found_.size()) found_.emplace_back();
      found_[place] = {copy_of(batch), row};
      largest_[name] = {*largest, place};
    }
  }
  std::vector<BatchArrays> batches() const {
    std::vector<BatchArrays> all;
    for (const Found& each : found_) all.push_back(each.batch);
    return all;
  }
  std::vector<BatchArrays> rows() const {
    std::vector<BatchArrays> all;
    for (const Found& each : found_) {
      BatchArrays& only = all.emplace_back();
      for (const auto& [name, array] : each.batch) only.add(name, part_of(array, 0, each.row, each.row + 1));
    }
    return all;
  }

 private:
  static BatchArrays copy_of(const BatchArrays& batch) {
    BatchArrays copy;
    for (const auto& [name, array] : batch) copy.add(name, array.clone());
    return copy;
  }
  std::vector<Found> found_;
  std::map<std::string, std::pair<std::int64_t, std::size_t>> largest_;  // the number, and its index in found_
};

Extremes extremes_of(const Batches& batches) {
  Extremes extremes;
  BatchArrays batch = batches.blank();
  for (std::int64_t index = 0; index < batches.validation_batches(); ++index) {
    batches.validation(index, batch);
    extremes.add(batch);
  }
  for (std::int64_t index = 0; index < std::max<std::int64_t>(1, batches.epoch_batches()); ++index) {
    batches.training(static_cast<std::uint64_t>(index), batch);
    extremes.add(batch);
  }
  return extremes;
}
}  // namespace

void try_evaluation(Model& model, const Recipe& recipe, const Tokenizers& tokenizers, const Batches& batches) {
  const Extremes extremes = extremes_of(batches);
  TrainerOptions options = recipe.trainer;
  options.memory = 0;
  const auto evaluate = [&](Model& of_recipe, const std::vector<BatchArrays>& few, const BatchArrays& largest) {
    const FewBatches data(batches, few, largest);
    Trainer(of_recipe, data, options).evaluate();
  };
  try {
    const std::vector<BatchArrays> rows = extremes.rows();
    evaluate(model, rows, rows[0]);
  } catch (const Error&) {
    // Weights of zero or a batch of a single row can be the cause. Initial weights and whole batches decide.
    Model initialised = new_model(recipe, tokenizers, batches, true);
    evaluate(initialised, extremes.batches(), batches.blank());
  }
}

void write_run(const Recipe& recipe, const Tokenizers& tokenizers, const Batches& batches,
               const std::vector<ArrayInput>& inputs, const std::string& directory) {
  const Model model = checked_model(recipe, tokenizers, batches);
  // Nothing is written before here, so that errors in the recipe leave no directory.
  const std::string beside = directory + ".writing";
  const FileLock lock = locked(beside, directory);
  try {
    check_new(directory);
    write_files(model, recipe, tokenizers, batches, inputs, beside);
    rename_path(beside, directory);
  } catch (...) {
    remove_if_possible(beside);
    throw;
  }
}

}  // namespace xtape::train
