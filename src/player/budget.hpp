/// Memory budgets of plans: steps run again so that a plan needs less memory than it would if it kept every value.
#pragma once

#include "plan.hpp"

namespace xtape {

/// The memory of a plan outside of its arena: outputs, carries, constants, fed inputs and parameters.
std::size_t bytes_outside(const PlannedProgram& planned);

/// Makes the plan need at most `memory` bytes, which is Plan::peak_bytes, in the least predicted time. `planned` is a
/// plan of `program`. Throws MemoryError, with the least memory that is possible and the op that needs it, if there is
/// no such plan.
void fit_memory(PlannedProgram& planned, const Program& program, std::size_t memory);

/// The memory and predicted time of the plan and of all plans between which fit_memory chooses: from the fastest to the
/// smallest.
std::vector<MemoryPoint> memory_curve(const PlannedProgram& planned);

}  // namespace xtape
