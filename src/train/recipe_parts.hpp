/// The parts of a recipe that have several kinds.
#pragma once

#include "section.hpp"
#include "xtape/train.hpp"

namespace xtape::train {

Recipe::Data read_data(Section section);
TokenizerSettings read_tokenizer(Section section);
/// Sizes of batches, into the recipe, whose data is known.
void read_batch(Section section, Recipe& recipe);
SearchOptions read_search(Section section);
OptimizerOptions read_optimizer(Section section);
/// `steps` is where linear and cosine schedules end unless the section says otherwise.
ScheduleOptions read_schedule(Section section, std::int64_t steps);

}  // namespace xtape::train
