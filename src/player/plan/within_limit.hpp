/// Plans of tapes whose scans may compute values again to keep to a memory limit.
#pragma once

#include "plan/plan.hpp"

namespace xtape {

/// The plan of the outputs. If it must repeat steps to keep to the limit of `options`, the fastest of the plans with and
/// without scans that compute values again. Throws LimitError, with the least memory of all, if none keeps to it.
PlannedProgram plan_within_limit(const Tape& tape, const Vars& outputs, const PlayerOptions& options, int threads);

/// The memory and predicted time of all plans between which plan_within_limit chooses: from the fastest to the smallest.
/// `options` has no limit.
std::vector<MemoryPoint> memory_curve(const Tape& tape, const Vars& outputs, const PlayerOptions& options, int threads);

}  // namespace xtape
