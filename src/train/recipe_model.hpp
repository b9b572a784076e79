/// The model of a recipe.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "run_data.hpp"

namespace xtape::train {

/// Hyper-parameters by name, as ModelOptions takes them.
using NamedTexts = std::vector<std::pair<std::string, std::string>>;

/// What a recipe sets by itself. A run's own definition already holds what its data said.
NamedTexts hyper_of(const Recipe& recipe);
/// The same with what the data says: sizes of vocabularies, and the columns of batches.
NamedTexts hyper_of(const Recipe& recipe, const Tokenizers& tokenizers, std::int64_t columns);

/// The recipe's definition with these hyper-parameters; without `initialise`, its weights are yet to be loaded. With
/// `opened_from`, the model of that Hugging Face folder.
Model model_of(const Recipe& recipe, NamedTexts hyper, bool initialise, const std::string& opened_from = "");

}  // namespace xtape::train
