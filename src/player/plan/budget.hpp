/// Memory budgets of plans. To need less memory, a plan discards values and runs steps again.
#pragma once

#include "player/plan/plan.hpp"
#include "player/plan/recompute.hpp"

namespace xtape {

/// Returns the memory of a plan outside of its arena: outputs, carries, constants, fed inputs and parameters.
std::size_t bytes_outside(const PlannedProgram& planned);

/// Thrown if no plan keeps to the limit.
class LimitError : public MemoryError {
 public:
  LimitError(const std::string& message, std::size_t least, const std::string& most)
      : MemoryError(message, least), most_(most) {}
  /// Returns the part of the minimal memory that is in the arena, and the step that needs this part: "3.25 MiB at tanh
  /// -> …". The text is empty if the plan has no steps.
  const std::string& most() const { return most_; }

 private:
  std::string most_;
};

/// Changes the plan so that it needs at most `memory` bytes (Plan::peak_bytes), with the least predicted time. Tries
/// the known ways first. If none keeps to the limit, searches for ways, adds them to `known` and takes the fastest.
/// Throws LimitError if there is no such plan. The message states the minimal memory and the op that needs it.
void fit_memory(PlannedProgram& planned, std::size_t memory, KnownWays& known);

/// Returns the memory and predicted time of the plan and of all plans among which fit_memory chooses. The order is from
/// the fastest to the smallest.
std::vector<MemoryPoint> memory_curve(const PlannedProgram& planned);

}  // namespace xtape
