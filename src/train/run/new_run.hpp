/// The directory of a new run.
#pragma once

#include "train/run/run_data.hpp"

namespace xtape::train {

inline constexpr const char* lock_file = "lock";
inline constexpr const char* checkpoints_folder = "checkpoints";

/// Creates the model of a new run. Throws DefinitionError or Error if the recipe, definition and data do not fit
/// together.
Model checked_model(const Recipe& recipe, const Tokenizers& tokenizers, const Batches& batches);

/// Makes a trainer and evaluates, as a training of the recipe does, but only on a few rows of the data. `model` comes
/// from checked_model, and its weights may be zeros. Throws the errors of Trainer.
void try_evaluation(Model& model, const Recipe& recipe, const Tokenizers& tokenizers, const Batches& batches);

/// Creates the directory of a new run atomically, with everything except metrics and checkpoints. Writes it under a
/// temporary name next to `directory` and then renames it. Throws FileError. Errors of the recipe, definition and data
/// are thrown before anything is written. For `inputs`, see Texts::inputs.
void write_run(const Recipe& recipe, const Tokenizers& tokenizers, const Batches& batches,
               const std::vector<ArrayInput>& inputs, const std::string& directory);

}  // namespace xtape::train
