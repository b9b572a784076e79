/// Runs of steps that compute some rows after others, without a meeting of the threads.
#pragma once

#include <vector>

#include "player/plan/plan.hpp"

namespace xtape {

/// Returns the kernel that copies elements of `type` from layout `in` to layout `out`.
Kernel copy_kernel(const ValueType& type, const Layout& in, const Layout& out, int threads);

/// Finds the runs of steps of a scan's body, which is played `times` times. Steps with PlannedStep::once take no part.
///
/// Consecutive steps whose kernels can compute rows (RowKernel) form a run if no row reads what another row writes: for
/// each buffer that a step of the run writes, all steps of the run have their rows at the same distance, and all that
/// they read and write of a row is nearer together. Buffers of a run do not share memory, because the plan extends
/// their lifetimes to the whole run.
std::vector<RowRun> find_row_runs(const PlannedProgram& planned, int threads, std::int64_t times);

}  // namespace xtape
