#include "new_run.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "durable.hpp"
#include "json_text.hpp"
#include "loss.hpp"
#include "observed_steps.hpp"
#include "recipe_parts.hpp"
#include "run_model.hpp"
#include "schedule_end.hpp"

namespace xtape::train {

namespace {
/// Returns the text of the run's recipe.json, which refers to the run's own copy of the definition.
std::string text_in_run(const Recipe& recipe, const Batches& batches, const std::vector<ArrayInput>& inputs) {
  Json json = JsonText(recipe.text, recipe.name, JsonErrors::definition).root();
  json["definition"] = "definition.json";
  if (recipe.original.empty() && !recipe.definition.empty())
    json["original"] = std::filesystem::absolute(find_definition(recipe.definition)).lexically_normal().string();
  if (recipe.data.has_rows() && recipe.data.has_tokens()) json["data"]["longest_row"] = batches.columns();
  if (recipe.data.has_images()) write_preparation(recipe.data, json["data"]);
  for (const ArrayInput& input : inputs)  // lists the columns of "*", because later tables may have others
    if (input.list) json["data"]["inputs"][input.name] = input.columns;
  return indented(json);
}

[[noreturn]] void exists(const std::string& directory) {
  throw FileError(directory + " already exists");
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
    if (path_exists(directory)) exists(directory);
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
  // Throws if the end of the schedule does not fit the data.
  with_steps(recipe.trainer.schedule, batches.epoch_batches(), recipe.trainer.accumulate);
  Model model = new_model(recipe, tokenizers, batches, false);
  check_loss(model, batches);
  check_labels(model, batches.blank(), tokenizers.labels);
  check_watched(model, batches.blank(), recipe.fit.watch);
  return model;
}

void write_run(const Recipe& recipe, const Tokenizers& tokenizers, const Batches& batches,
               const std::vector<ArrayInput>& inputs, const std::string& directory) {
  const Model model = checked_model(recipe, tokenizers, batches);
  // Nothing is written before here, so that errors in the recipe leave no directory.
  const std::string beside = directory + ".writing";
  const FileLock lock = locked(beside, directory);
  try {
    if (path_exists(directory)) exists(directory);
    write_files(model, recipe, tokenizers, batches, inputs, beside);
    rename_path(beside, directory);
  } catch (...) {
    remove_if_possible(beside);
    throw;
  }
}

}  // namespace xtape::train
