/// Creates the model of a run from a recipe. Writes it to the run's directory and reads it back.
#pragma once

#include <string>
#include <vector>

#include "train/run/run_data.hpp"

namespace xtape::train {

/// Creates the model of a recipe: from its definition, or from the folder from which the recipe starts. If `initialise`
/// is false, a model from a definition gets weights of zero. Throws Error if the tokenizer has more tokens than the
/// folder's model.
Model new_model(const Recipe& recipe, const Tokenizers& tokenizers, const Batches& batches, bool initialise);

/// Writes the model's definition. If the recipe starts from a folder, also writes its weights and copies the folder's
/// tokenizer and settings files. For a later export as a folder, also writes the names of labels and the image
/// preparation.
void write_model(const Model& model, const Recipe& recipe, const std::vector<std::string>& labels,
                 const std::string& directory);

/// Loads the model of the run in `directory`. With `has_checkpoint`, its weights are zero; otherwise they are the
/// initial weights of the run.
Model run_model(const Recipe& recipe, const std::string& directory, bool has_checkpoint);

/// Throws FileError if a weight of the run's model that is not an adapter differs from the run's initial weight.
void check_adapters_alone(const Model& model, const std::string& directory);

/// Returns the subdirectory for the files that an export as a folder contains besides the model: the config and
/// tokenizer files of the initial folder, the labels, and the image preparation.
std::string hugging_face_folder(const std::string& directory);

}  // namespace xtape::train
