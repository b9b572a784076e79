/// The parts of a recipe that have several kinds.
#pragma once

#include "section.hpp"
#include "xtape/train.hpp"

namespace xtape::train {

inline constexpr std::int64_t longest_row = 1 << 24;         ///< Tokens that a recipe may ask of a row.
inline constexpr const char* standard_input = "/dev/stdin";  ///< What the path "-" stands for.

Recipe::Data read_data(Section section);
/// What data says about sizes, by the names that {"from": …} takes.
std::vector<std::string> data_names(const Recipe::Data& data);
TokenizerSettings read_tokenizer(Section section);
/// Sizes of batches, into the recipe, whose data is known.
void read_batch(Section section, Recipe& recipe);
SearchOptions read_search(Section section);
OptimizerOptions read_optimizer(Section section);
/// `steps` is where linear and cosine schedules end unless the section says otherwise.
ScheduleOptions read_schedule(Section section, std::int64_t steps);

}  // namespace xtape::train
