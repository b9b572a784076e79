/// The model of a run: as its recipe makes it, and as it stands in the run's directory.
#pragma once

#include <string>
#include <vector>

#include "run_data.hpp"

namespace xtape::train {

/// The model that a recipe asks for: one of its definition, whose weights are left at zero without `initialise`, or
/// that of the folder which it starts from. Throws Error where the tokenizer has more tokens than that one knows.
Model new_model(const Recipe& recipe, const Tokenizers& tokenizers, std::int64_t columns, bool initialise);

/// Writes what the run's model is: its definition, and of one that started from a folder its weights and the folder's
/// words.
void write_model(const Model& model, const Recipe& recipe, const std::string& directory);

/// The model of the run in `directory`. Before the first checkpoint it has the weights that the run starts from;
/// `has_checkpoint` leaves them at zero.
Model run_model(const Recipe& recipe, const std::string& directory, bool has_checkpoint);

/// Where a run that started from a folder keeps that one's words.
std::string words_folder(const std::string& directory);

}  // namespace xtape::train
