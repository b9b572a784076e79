/// The parts of a run: its directory, model, changes, and the weights that it trains.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ranks/rank_group.hpp"
#include "train/data/data_kind.hpp"
#include "xtape/recipe.hpp"
#include "xtape/train.hpp"

namespace xtape::train {

// The directory of a new run.

inline constexpr const char* lock_file = "lock";
inline constexpr const char* checkpoints_folder = "checkpoints";
/// Returns the folder in which a run keeps the tokens of a long text. It can be deleted: they are made again.
inline std::string cache_of(const std::string& directory) {
  return directory + "/cache";
}

/// Creates the model of a new run. Throws DefinitionError or Error if the recipe, definition and data do not fit
/// together.
Model checked_model(const Recipe& recipe, const Tokenizers& tokenizers, const Batches& batches);

/// Makes a trainer and evaluates, as a training of the recipe does, but only on a few rows of the data. `model` comes
/// from checked_model, and its weights may be zeros. Throws the errors of Trainer.
void try_evaluation(Model& model, const Recipe& recipe, const Tokenizers& tokenizers, const Batches& batches);

/// Creates the directory of a new run atomically, with everything except metrics and checkpoints. Writes it under a
/// temporary name next to `directory` and then renames it. Throws FileError. Errors of the recipe, definition and data
/// are thrown before anything is written. For `inputs`, see DataSplits::inputs.
void write_run(const Recipe& recipe, const Tokenizers& tokenizers, const Batches& batches,
               const std::vector<ArrayInput>& inputs, const std::string& directory);

// Creates the model of a run from a recipe. Writes it to the run's directory and reads it back.

/// Creates the model of a recipe: from its definition, or from the folder from which the recipe starts. If `initialise`
/// is false, a model from a definition gets weights of zero. Throws Error if the tokenizer has more tokens than the
/// folder's model.
Model new_model(const Recipe& recipe, const Tokenizers& tokenizers, const Batches& batches, bool initialise);

/// Reads the weights of Recipe::start. Throws FileError if a source has no weights, or if its arrays do not fit the
/// weights of the model. Throws DefinitionError if `into` matches no weight.
void read_start(Model& model, const Recipe& recipe);

/// Writes the model's definition. If the recipe starts from a folder, also writes its weights and copies the folder's
/// tokenizer and settings files. For a later export as a folder, also writes the names of labels and the image
/// preparation.
void write_model(const Model& model, const Recipe& recipe, const std::vector<std::string>& labels,
                 const std::string& directory);

/// Writes the names of labels to the config of a folder for an export, and what the kind of data adds.
void write_labels(const Model& model, const Recipe& recipe, const std::vector<std::string>& labels,
                  const std::string& folder);

/// Loads the model of the run in `directory`. With `has_checkpoint`, its weights are zero; otherwise they are the
/// initial weights of the run.
Model run_model(const Recipe& recipe, const std::string& directory, bool has_checkpoint);

/// Throws FileError if a weight of the run's model that is not an adapter differs from the run's initial weight.
void check_adapters_alone(const Model& model, const std::string& directory);

/// Returns the subdirectory for the files that an export as a folder contains besides the model: the config and
/// tokenizer files of the initial folder, the labels, and the image preparation.
std::string hugging_face_folder(const std::string& directory);

// Checks what all processes of a run must have in common.

/// Throws Error if the ranks differ in version, instruction set, kernels or recipe. The numbers of threads may differ.
void check_agreement(ranks::RankGroup& group, const Recipe& recipe);
/// Throws Error if the ranks have not read the same data.
void check_agreement(ranks::RankGroup& group, const DataSplits& splits);

// What may change in the recipe of a run, and the record of these changes in its recipe.json.

/// Throws DefinitionError, which lists them, if `settings` have changed keys of a run's recipe that cannot change,
/// because the run's weights or checkpoints would lose their meaning. `before` is the text of the recipe of the run in
/// `directory`, and `after` that of the recipe with the settings. The tables of keys say which.
void check_changes(const std::string& directory, const std::string& before, const std::string& after,
                   const std::vector<Setting>& settings);

/// Writes the recipe `after` to recipe.json of the run in `directory`, if it differs from `before` or if the record of
/// changes is out of date, because the run has gone back to an earlier step. The updates after `step` are made with
/// `after`. The entry "changes" keeps the former values: each of its elements has the last step made with the values
/// that it lists. The file is replaced in one step. Returns the recipe with the record. Throws FileError.
std::string write_changes(const std::string& directory, const std::string& before, const std::string& after,
                          std::int64_t step);

/// Returns the settings that give a run's recipe, of which `recipe` is the text, the values with which update `update`
/// was made.
std::vector<Setting> settings_of_update(const std::string& recipe, std::int64_t update);

// Determines which weights of a model are trained.

/// Returns the weights that gradients train: all weights that are not frozen and that the definition does not update
/// itself. Throws DefinitionError if a pattern matches no weight or if no weight remains. Throws Error if both `frozen`
/// and `trainable` are given, or if a weight is stored as bfloat16, float16 or int8.
Store trained_weights(const Model& model, const TrainerOptions& options);
/// Returns the weights that the definition updates itself and that are not frozen.
std::vector<std::string> updated_weights(const Model& model, const TrainerOptions& options);

}  // namespace xtape::train
