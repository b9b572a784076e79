/// Schedules whose end is given in epochs.
#pragma once

#include <cstdint>

#include "xtape/optim.hpp"

namespace xtape::train {

/// The schedule; one whose end is given in epochs ends with the update that completes them. An update adds `accumulate`
/// of the `epoch_batches` batches. Throws Error if there are no epochs, or the warm-up is longer.
ScheduleOptions with_steps(ScheduleOptions schedule, std::int64_t epoch_batches, std::int64_t accumulate);

}  // namespace xtape::train
