/// The model of a run: creating it from a recipe, and writing and reading it in the run's directory.
#pragma once

#include <string>
#include <vector>

#include "run_data.hpp"

namespace xtape::train {

/// Creates the model of a recipe: from its definition, with weights of zero unless `initialise`, or from the folder
/// that the recipe starts from. Throws Error if the tokenizer has more tokens than the folder's model.
Model new_model(const Recipe& recipe, const Tokenizers& tokenizers, const Batches& batches, bool initialise);

/// Writes the model's definition. If the recipe starts from a folder, also writes its weights and copies the folder's
/// tokenizer and settings files. For a later export as a folder, writes the names of labels and how images are
/// prepared.
void write_model(const Model& model, const Recipe& recipe, const std::vector<std::string>& labels,
                 const std::string& directory);

/// Loads the model of the run in `directory` with the weights that the run starts from, or, with `has_checkpoint`, with
/// weights of zero.
Model run_model(const Recipe& recipe, const std::string& directory, bool has_checkpoint);

/// Throws FileError if weights of the run's model other than its adapters are not those that the run started from.
void check_adapters_alone(const Model& model, const std::string& directory);

/// The subdirectory for what an export as a folder says beside the model: the config and tokenizer files of the folder
/// that the run started from, labels and the preparation of images.
std::string hugging_face_folder(const std::string& directory);

}  // namespace xtape::train
