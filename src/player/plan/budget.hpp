/// Memory budgets of plans. To need less memory, a plan discards values and runs steps again.
#pragma once

#include <map>
#include <string>

#include "player/plan/plan.hpp"
#include "player/plan/schedule.hpp"

namespace xtape {

/// A way to play a plan.
struct Way {
  std::size_t peak = 0;  ///< The peak of the schedule (Schedule::peak).
  double seconds = 0;    ///< The predicted time (Schedule::seconds).
  Drops drops;
};

/// The ways found for the graphs of the players of one arena. The training plans for batches of different shapes have
/// the same steps with different sizes, and the same drops save memory in all of these plans. Searching again would
/// take most of the planning time.
class KnownWays {
 public:
  /// Returns the ways found for graphs of this structure, those of the latest search first. Their drops are possible
  /// in this graph, but their costs may belong to other graphs.
  std::vector<Way>& of(const StepGraph& graph);
  std::int64_t searches = 0;  ///< How often ways were searched for.

 private:
  std::map<std::vector<int>, std::vector<Way>> ways_;
};

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
std::vector<MemoryPoint> memory_curve(PlannedProgram planned);

// Errors for plans that need more memory than this process can use.

/// Throws Error if an array of `type` alone takes more memory than `most`. The message names the node's op and source
/// location. `most` is memory_limit(), the memory that this process can use.
void require_memory(const Node& node, const ValueType& type, std::size_t most);

/// Throws Error if a dense array of `type` would exceed the address space of current processors. Use this check for an
/// operand that may repeat elements, and may therefore take less memory than a dense array. The check allows kernels to
/// compute small multiples of the number of bytes in 64 bits.
void require_countable(const Node& node, const ValueType& type);

/// Throws Error if the plan's buffers take more memory than this process can use. The message names the op of the
/// largest buffer.
void require_memory(const PlannedProgram& planned);

/// Describes a step for messages: "tanh -> float32 (2, 3) at …".
std::string described(const PlannedProgram& planned, const PlannedStep& step);

/// Throws Error for a plan whose memory could not be allocated. The message names the op of the largest buffer and the
/// reason `why`.
[[noreturn]] void out_of_memory(const PlannedProgram& planned, const std::string& why);

}  // namespace xtape
