/// The parts of a recipe that have several kinds.
#pragma once

#include "section.hpp"
#include "xtape/optim.hpp"

namespace xtape::train {

OptimizerOptions read_optimizer(Section section);
/// `steps` is where linear and cosine schedules end unless the section says otherwise.
ScheduleOptions read_schedule(Section section, std::int64_t steps);

}  // namespace xtape::train
