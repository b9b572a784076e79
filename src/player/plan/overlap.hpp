/// Arrays that share memory by mistake.
#pragma once

#include <vector>

#include "plan/plan.hpp"

namespace xtape {

/// Throws Error if memory that a plan writes (outputs, carries, fed inputs) is also that of another buffer. `memory` has
/// an array for each buffer, which may be empty.
void check_overlaps(const PlannedProgram& planned, const std::vector<const Array*>& memory);

/// The arrays of the buffers.
std::vector<const Array*> memory_of(const std::vector<Buffer>& buffers);

}  // namespace xtape
