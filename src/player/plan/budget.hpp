/// Memory budgets of plans: steps run again so that a plan needs less memory than it would if it kept every value.
#pragma once

#include "plan/plan.hpp"
#include "plan/recompute.hpp"

namespace xtape {

/// The memory of a plan outside of its arena: outputs, carries, constants, fed inputs and parameters.
std::size_t bytes_outside(const PlannedProgram& planned);

/// No plan keeps to the limit.
class LimitError : public MemoryError {
 public:
  LimitError(const std::string& message, std::size_t least, const std::string& most)
      : MemoryError(message, least), most_(most) {}
  /// What needs most of the least memory: "3.25 MiB at tanh -> …"; empty if the plan has no steps.
  const std::string& most() const { return most_; }

 private:
  std::string most_;
};

/// Makes the plan need at most `memory` bytes, which is Plan::peak_bytes, in little predicted time. Tries the known
/// ways first; if none keeps to the limit, searches, adds what it finds to them, and takes the fastest. Throws
/// LimitError, with the least memory that is possible and the op that needs it, if there is no such plan.
void fit_memory(PlannedProgram& planned, std::size_t memory, KnownWays& known);

/// The memory and predicted time of the plan and of all plans between which fit_memory chooses: from the fastest to the
/// smallest.
std::vector<MemoryPoint> memory_curve(const PlannedProgram& planned);

}  // namespace xtape
