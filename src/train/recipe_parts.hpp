/// Readers of the sections of a recipe.
#pragma once

#include "section.hpp"
#include "xtape/train.hpp"

namespace xtape::train {

inline constexpr std::int64_t longest_row = 1 << 24;         ///< The largest row length of a recipe, in tokens.
inline constexpr const char* standard_input = "/dev/stdin";  ///< The file that the path "-" means.

Recipe::Data read_data(Section section);
/// The names of the data's sizes that {"from": …} can refer to.
std::vector<std::string> data_names(const Recipe::Data& data);
TokenizerSettings read_tokenizer(Section section);
/// Reads the batch sizes into the recipe, whose `data` must have been read.
void read_batch(Section section, Recipe& recipe);
SearchOptions read_search(Section section);
Precision read_precision(Section& root);
/// The key 'memory' in bytes; 0 if it is missing.
std::size_t read_memory(Section& root);
OptimizerOptions read_optimizer(Section section);
/// Linear and cosine schedules end by default with the steps of `fit`, or without steps with its epochs.
ScheduleOptions read_schedule(Section section, const Trainer::FitOptions& fit);

}  // namespace xtape::train
