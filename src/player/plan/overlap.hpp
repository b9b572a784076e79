/// Detects arrays that share memory by mistake.
#pragma once

#include <vector>

#include "player/plan/plan.hpp"

namespace xtape {

/// Throws Error if memory that a plan writes (outputs, carries, fed inputs) overlaps the memory of another buffer.
/// `memory` contains the player's arrays in the order of PlannedProgram::memory. Some of them may be empty.
void check_overlaps(const PlannedProgram& planned, const std::vector<Array>& memory);

}  // namespace xtape
