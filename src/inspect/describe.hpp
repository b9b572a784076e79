/// Describes a failure.
#pragma once

#include "inspect/failing.hpp"

namespace xtape {

/// The steps of a call with a body, recorded one by one.
struct Unrolled {
  const Tape& tape;
  const Tape& body;
  std::optional<Stepping> steps;  ///< Empty if the body is not a step of a scan.

  /// Returns the step to which node `index` of the tape belongs, as an index along the axis of steps. Returns -1 if the
  /// node belongs to no step.
  std::int64_t step_of(std::int32_t index) const;
};

/// Returns the index of the caller's node from which a node of the program comes.
std::int32_t number_of(const Program& program, std::int32_t index);

/// Inserts the step to which node `index` belongs at the beginning of `time_steps`. The steps of scans inside of this
/// step come after it. Does nothing if `steps` is null, which means that the node is not inside of a body.
void add_step(std::vector<std::int64_t>& time_steps, const Unrolled* steps, const Program& program, std::int32_t index);

Failure described(const Program& program, const FailingNode& failing, const Causes& causes, const Unrolled* steps);

}  // namespace xtape
