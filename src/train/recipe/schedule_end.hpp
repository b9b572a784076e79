/// Schedules whose end is given in epochs.
#pragma once

#include <cstdint>

#include "xtape/optim.hpp"

namespace xtape::train {

/// Returns the schedule with its end in updates. If the end is given in epochs, the schedule ends with the update that
/// completes these epochs. An epoch has `epoch_batches` batches, and an update reads `accumulate` batches. Throws Error
/// if the data has no epochs, or if the warm-up is longer than the schedule.
ScheduleOptions with_steps(ScheduleOptions schedule, std::int64_t epoch_batches, std::int64_t accumulate);

}  // namespace xtape::train
