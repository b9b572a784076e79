/// The directory of a new run.
#pragma once

#include "run_data.hpp"

namespace xtape::train {

inline constexpr const char* lock_file = "lock";
inline constexpr const char* checkpoints_folder = "checkpoints";

/// The model of a new run. Throws DefinitionError or Error if recipe, definition and data do not fit together.
Model checked_model(const Recipe& recipe, const Tokenizers& tokenizers, const Batches& batches);

/// Creates a new run's directory atomically, with everything except metrics and checkpoints: writes it under a
/// temporary name next to `directory`, then renames it. Throws FileError, and errors of recipe, definition and data
/// before it writes anything. `inputs`: see Texts::inputs.
void write_run(const Recipe& recipe, const Tokenizers& tokenizers, const Batches& batches,
               const std::vector<ArrayInput>& inputs, const std::string& directory);

}  // namespace xtape::train
