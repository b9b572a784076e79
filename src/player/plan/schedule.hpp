/// The order in which a plan's steps run if some of them run again. Also computes the time and the arena memory that
/// such an order needs.
///
/// Steps keep their order. Before a step, earlier steps may run again to compute contents that were not kept. A
/// repeated step uses the same kernel, so its results have the same bits.
#pragma once

#include <compare>
#include <limits>
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
  /// The step that overwrites the content. Later uses must compute it again.
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
  std::vector<Content> contents;
  std::vector<StepUse> steps;
  /// The steps that run again together, because they write parts of one content, in order. The number of a block is
  /// that of its last step; other numbers have empty blocks.
  std::vector<std::vector<int>> blocks;
  std::vector<int> block_of;  ///< Per step.

 private:
  void find_blocks();
};

/// The choice not to keep the contents that a block writes until `step`, and to compute them again before `step` if
/// this step or a later step needs them.
struct Recomputation {
  int step = 0, block = 0;
  auto operator<=>(const Recomputation&) const = default;
};
using Recomputations = std::vector<Recomputation>;  ///< Sorted.

/// One run of a step: the first run, or a repetition before the step `stage`.
struct Execution {
  int stage = 0, step = 0;
  std::size_t first = 0;  ///< The index of its first operand in Schedule::operands.
  int scratch = -1;       ///< The instance of its scratch memory.
  auto operator<=>(const Execution&) const = default;
};

/// A content or scratch memory in the arena, from execution `first` to execution `last`.
struct Instance {
  int content = -1;  ///< -1 for scratch memory.
  std::size_t bytes = 0;
  int first = 0, last = 0;
  int place = 0;  ///< The instance whose memory this one uses: itself, or one that ends when this one begins.
};

struct Schedule {
  bool possible = false;  ///< Whether every needed content is available or can be computed.
  double seconds = 0;     ///< The predicted time of the repeated steps.
  std::size_t peak = 0;   ///< The largest number of arena bytes in use at once, without the gaps between buffers.
  int peak_at = 0;        ///< The execution with the peak.
  std::vector<std::size_t> peaks;  ///< Per step: the largest number of bytes while the step and its repetitions run.
  std::vector<Execution> executions;
  std::vector<Instance> instances;
  std::vector<int> operands;  ///< Per operand of an execution: its instance, or -1 outside of the arena.
  /// Returns the lifetimes of the instances. An instance that uses the memory of another one has no bytes.
  std::vector<Lifetime> lifetimes() const;
};

/// Computes schedules. Reuses its working memory, because searches compute thousands of schedules.
class Scheduler {
 public:
  explicit Scheduler(const StepGraph& graph) : graph_(graph) {}
  void make(const Recomputations& choices, Schedule& schedule);

 private:
  bool find_executions(const Recomputations& choices, Schedule& schedule);
  bool writes(int content, int step, int stage) const;
  bool need(int content, int step);
  void run(int number, Schedule& schedule);
  void measure(Schedule& schedule);

  const StepGraph& graph_;
  std::vector<char> kept_;            // per content: whether it must be available before the current step
  std::vector<int> present_;          // per content: its instance
  std::vector<std::int64_t> change_;  // per execution: the change of the bytes in use
};

}  // namespace xtape
