/// Steps that run band by band behind another: what one has written is read again while it lies in a cache.
#pragma once

#include <vector>

#include "plan.hpp"
#include "program.hpp"

namespace xtape {

/// Moves elementwise ops and norms up to the op whose output they read, where nothing that they need comes later.
Program follow_pass(const Program& program);

/// Makes followers of steps that may run band by band behind the step before them: of a product's those that add a bias
/// or a residual, apply an activation or drop out, and then a normalisation. Buffers are final.
std::vector<PlannedStep> join_bands(std::vector<PlannedStep> steps);

}  // namespace xtape
