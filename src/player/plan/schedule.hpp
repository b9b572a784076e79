/// The order in which a plan's steps run if some of them run again. Also computes the time and the arena memory that
/// such an order needs.
///
/// Steps keep their order. Before a step, earlier steps may run again to compute contents that were not kept. A
/// repeated step uses the same kernel, so its results have the same bits.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "player/plan/plan.hpp"

namespace xtape {

/// The content of a buffer, from the step that writes it until a step overwrites it completely.
struct Content {
  int buffer = -1;
  std::size_t bytes = 0;   ///< Rounded up to a multiple of 64, as in the arena.
  bool in_arena = false;   ///< Contents outside of the arena take no memory there.
  bool repeatable = true;  ///< False if no step writes the content, or if a step reads it before its last writer.
  /// The steps that write the content, in order. There are several if each of them writes a part. The list is empty if
  /// the content exists before the first step.
  std::vector<int> writers;
  /// The step that overwrites the content. Later uses must compute it again.
  int until = std::numeric_limits<int>::max();
};

/// A step, described by the contents that it uses.
struct StepUse {
  std::vector<int> in, out;  ///< The contents of its operands and results, in order.
  std::vector<int> reads;    ///< Each content of `in` once, and each content to which the step adds a further part.
  std::vector<int> writes;   ///< Each content of `out` once.
  std::vector<int> takes;    ///< Contents whose memory the first result may reuse if no later step reads them.
  std::size_t scratch = 0;
  double seconds = 0;  ///< The predicted time.
};

struct StepGraph {
  explicit StepGraph(const PlannedProgram& planned);
  std::vector<Content> contents;
  std::vector<StepUse> steps;
};

/// The choice not to keep `content` until `step`, and to compute it again before `step` if this step or a later step
/// needs it.
struct Recomputation {
  int step = 0, content = 0;
};

class Recomputations {
 public:
  Recomputations(const StepGraph& graph) : graph_(&graph), at_(graph.steps.size()) {}
  bool has(Recomputation choice) const;
  void flip(Recomputation choice);  ///< Adds the choice, or removes it if it is there.
  /// Returns the contents that are computed again before a step. The content that is written last comes first. No
  /// content in the list is computed from a content after it in the list.
  const std::vector<int>& before(int step) const { return at_[step]; }
  std::vector<Recomputation> list() const;
  /// Returns the first choice for this content after `step`. Its content is -1 if there is no such choice.
  Recomputation next(int content, int step) const;

 private:
  const StepGraph* graph_;
  std::vector<std::vector<int>> at_;
};

/// One run of a step: the first run, or a repetition before the step `stage`.
struct Execution {
  int step = 0, stage = 0;
  int first_use = 0, end_use = 0;  ///< Indices in Schedule::uses.
};

/// A content in memory, from execution `first` to execution `last`. A content outside of the arena has an instance only
/// if a step that is repeated for the sake of another content computes it again.
struct Instance {
  int content = 0;
  int first = 0, last = 0;
  int taken = -1;  ///< The instance whose memory this one reuses.
};

struct Use {
  int instance = 0;  ///< -1 stands for the plan's own buffer outside of the arena
  int content = 0;
  bool writes = false;
};

struct Schedule {
  bool possible = false;  ///< Whether every needed content is available or can be computed.
  double seconds = 0;     ///< The predicted time of the repeated steps.
  std::size_t peak = 0;   ///< The largest number of arena bytes in use at once, without the gaps between buffers.
  int peak_at = 0;        ///< The execution with the peak.
  std::vector<std::size_t> peaks;  ///< Per step: the largest number of bytes while the step and its repetitions run.
  std::vector<Execution> executions;
  std::vector<Instance> instances;
  std::vector<Use> uses;
};

/// Computes schedules. Reuses its working memory, because searches compute thousands of schedules.
class Scheduler {
 public:
  explicit Scheduler(const StepGraph& graph);
  void make(const Recomputations& choices, Schedule& schedule);

 private:
  bool find_repeats(const Recomputations& choices, Schedule& schedule);
  bool need(int content, int step);
  void run(int step, int stage, Schedule& schedule);
  void measure(Schedule& schedule);

  const StepGraph& graph_;
  std::vector<char> kept_;                     // per content: whether it must be available before the current step
  std::vector<int> repeated_for_;              // per step: the last step for which it was repeated
  std::vector<int> wanted_;                    // per content: the last step for which it was wanted
  std::vector<int> repeats_, wishes_;          // the steps and contents of all stages, from the last stage to the first
  std::vector<int> repeats_end_, wishes_end_;  // per stage: the ends of its parts of `repeats_` and `wishes_`
  std::vector<int> present_;                   // per content: its instance
  std::vector<std::int64_t> change_;           // per execution: the change of the bytes in use
};

}  // namespace xtape
