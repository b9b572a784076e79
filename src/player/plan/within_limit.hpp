/// Plans of tapes whose scans may compute values again to keep to a memory limit.
#pragma once

#include "player/plan/plan.hpp"

namespace xtape {

/// Returns the plan of the outputs. If the plan must repeat steps to keep to the limit of `options`, returns the
/// fastest of the plans with and without scans that compute values again. Throws LimitError if none of these plans
/// keeps to the limit. The error states the smallest memory that any of them needs.
PlannedProgram plan_within_limit(const Tape& tape, const Vars& outputs, const PlayerOptions& options, int threads);

/// Returns the memory and predicted time of the plans among which plan_within_limit chooses. The order is from the
/// fastest to the smallest. Leaves out plans that are slower than another plan but do not need less memory. `options`
/// has no limit.
std::vector<MemoryPoint> memory_curve(const Tape& tape, const Vars& outputs, const PlayerOptions& options, int threads);

}  // namespace xtape
