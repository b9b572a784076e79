/// The order in which a plan's steps run if some of them run again. Also computes the time and the arena memory that
/// such an order needs.
///
/// Steps keep their order. Before a step, earlier steps run again to compute contents that the step reads and that were
/// dropped. A repeated step uses the same kernel, so its results have the same bits.
#pragma once

#include <compare>
#include <limits>
#include <span>
#include <vector>

#include "player/plan/memory.hpp"
#include "player/plan/plan.hpp"

namespace xtape {

/// The content of a buffer, from the step that writes it until a step overwrites it completely.
struct Content {
  Buffer held;            ///< A buffer for this content alone.
  std::size_t bytes = 0;  ///< Rounded up to a multiple of 64, as in the arena.
  bool in_arena = false;
  bool repeatable = false;  ///< Whether its writers can compute it again.
  /// The steps that write the content, in order. There are several if each of them writes a part. The list is empty if
  /// the memory was filled before the first step.
  std::vector<int> writers;
  /// The step that overwrites the content. No later step can read it again.
  int until = std::numeric_limits<int>::max();
};

/// A step, described by the contents that it uses.
struct StepUse {
  std::vector<int> in, out;  ///< The contents of its operands and results, in order.
  std::vector<int> takes;    ///< Operands whose memory the first result may reuse if no later step reads them.
  std::size_t scratch = 0;
  double seconds = 0;  ///< The predicted time.
};

struct StepGraph {
  explicit StepGraph(const PlannedProgram& planned);
  /// Returns the steps that run again together to compute the content, because they write parts of one content.
  const std::vector<int>& block(int content) const { return blocks[block_of[contents[content].writers.back()]]; }

  std::vector<Content> contents;
  std::vector<StepUse> steps;
  /// The steps of each block, in order. The number of a block is that of its last step; other numbers have no steps.
  std::vector<std::vector<int>> blocks;
  std::vector<int> block_of;  ///< Per step.

 private:
  void find_blocks();
};

/// The choice not to keep a content after a run of a step. `step` ran at `stage` (Execution). If a later step reads the
/// content, the steps of its block run again before it.
struct Drop {
  int stage = 0, step = 0, content = 0;
  auto operator<=>(const Drop&) const = default;
};
using Drops = std::vector<Drop>;  ///< Sorted.

/// One run of a step: the first run, or a repetition before the step `stage`.
struct Execution {
  int stage = 0, step = 0;
  std::size_t first = 0, count = 0;  ///< Its operands in Schedule::operands.
  int scratch = -1;                  ///< The instance of its scratch memory.
};

/// A content or scratch memory in the arena, from execution `first` to execution `last`.
struct Instance {
  int content = -1;  ///< -1 for scratch memory.
  std::size_t bytes = 0;
  int first = 0, last = 0;
  int place = 0;  ///< The instance whose memory this one uses: itself, or one that ends when this one begins.
};

struct Schedule {
  bool possible = false;  ///< Whether every content that a step reads can be there.
  double seconds = 0;     ///< The predicted time of the repeated steps.
  std::size_t peak = 0;   ///< The largest number of arena bytes in use at once, without the gaps between buffers.
  int peak_at = 0;        ///< The execution with the peak.
  std::vector<std::size_t> peaks;  ///< Per step: the largest number of bytes while the step and its repetitions run.
  std::vector<Execution> executions;
  std::vector<Instance> instances;
  std::vector<int> operands;  ///< Per operand of an execution: its instance, or -1 outside of the arena.
  std::span<const int> of(int execution) const {
    return {operands.data() + executions[execution].first, executions[execution].count};
  }
  /// Returns the lifetimes of the instances. An instance that uses the memory of another one has no bytes.
  std::vector<Lifetime> lifetimes() const;
};

/// Sets `schedule` to the schedule of the graph with these drops. Reuses the memory of `schedule`.
void make_schedule(const StepGraph& graph, const Drops& drops, Schedule& schedule);

}  // namespace xtape
