/// Arrays that share memory by mistake.
#pragma once

#include <vector>

#include "plan/plan.hpp"

namespace xtape {

/// Throws Error if memory that a plan writes (outputs, carries, fed inputs) is also that of another buffer. `memory` is a
/// player's, as PlannedProgram::memory; arrays may be empty.
void check_overlaps(const PlannedProgram& planned, const std::vector<Array>& memory);

}  // namespace xtape
