/// What is said about a failure.
#pragma once

#include "failing.hpp"

namespace xtape {

/// The steps of a call with a body, recorded one by one.
struct Unrolled {
  const Tape& tape;
  const Tape& body;
  std::optional<Stepping> steps;  ///< Empty if the body is no step.

  /// The index along the axis of the steps to which node `index` of the tape belongs; -1 if it belongs to none.
  std::int64_t step_of(std::int32_t index) const;
};

/// The number of the caller's node that a node of the program comes from.
std::int32_t number_of(const Program& program, std::int32_t index);

/// Adds the step of a node of the program in front of those of the bodies within. `steps` is null outside bodies.
void add_step(std::vector<std::int64_t>& time_steps, const Unrolled* steps, const Program& program, std::int32_t index);

Failure described(const Program& program, const FailingNode& failing, const Causes& causes, const Unrolled* steps);

}  // namespace xtape
