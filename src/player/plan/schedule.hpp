/// The order of a plan's steps if some of them run again: what it costs, and what it needs of the arena.
///
/// Steps keep their order. Before a step, earlier ones may run again to compute contents that were not kept for it.
/// A step that runs again has the same kernel, so the bits are the same.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "plan/plan.hpp"

namespace xtape {

/// What a buffer holds from a step that writes it until a step overwrites all of it.
struct Content {
  int buffer = -1;
  std::size_t bytes = 0;     ///< Rounded up to 64, as in the arena.
  bool in_arena = false;     ///< Others take no memory of the arena.
  bool repeatable = true;    ///< False if a step reads it before all its writers have run.
  std::vector<int> writers;  ///< In order; several if each writes a part. None: it is there before the first step.
  int until = std::numeric_limits<int>::max();  ///< The step that overwrites it. Later it must be computed again.
};

/// A step, by the contents that it uses.
struct StepUse {
  std::vector<int> in, out;  ///< The contents of its operands and results, in order.
  std::vector<int> reads;    ///< Each content of `in` once, and those of which it writes a further part.
  std::vector<int> writes;   ///< Each content of `out` once.
  std::vector<int> takes;    ///< Contents whose memory the first result may take if nothing reads them later.
  std::size_t scratch = 0;
  double seconds = 0;  ///< Predicted.
};

struct StepGraph {
  explicit StepGraph(const PlannedProgram& planned);
  std::vector<Content> contents;
  std::vector<StepUse> steps;
};

/// Before step `step`, `content` is computed again if it is needed from there on, and until then it is not kept.
struct Recomputation {
  int step = 0, content = 0;
};

class Recomputations {
 public:
  Recomputations(const StepGraph& graph) : graph_(&graph), at_(graph.steps.size()) {}
  bool has(Recomputation choice) const;
  void flip(Recomputation choice);  ///< Adds or removes it.
  /// The contents chosen before a step, the last written first: none of them is computed from a later one.
  const std::vector<int>& before(int step) const { return at_[step]; }
  std::vector<Recomputation> list() const;
  /// The first choice of this content after `step`; its content is -1 if there is none.
  Recomputation next(int content, int step) const;

 private:
  const StepGraph* graph_;
  std::vector<std::vector<int>> at_;
};

/// A run of a step: the first one, or one more before the step `stage`.
struct Execution {
  int step = 0, stage = 0;
  int first_use = 0, end_use = 0;  ///< Indices in Schedule::uses.
};

/// A content in memory, from execution `first` to execution `last`. Contents outside of the arena have one only where a
/// repeated step computes them for nothing.
struct Instance {
  int content = 0;
  int first = 0, last = 0;
  int taken = -1;  ///< The instance whose memory it takes.
};

struct Use {
  int instance = 0;  ///< -1: the plan's own buffer outside of the arena.
  int content = 0;
  bool writes = false;
};

struct Schedule {
  bool possible = false;           ///< Whether every content that is needed is there or can be computed.
  double seconds = 0;              ///< Predicted, of steps that run again.
  std::size_t peak = 0;            ///< The most bytes of the arena in use at once; gaps between buffers come on top.
  int peak_at = 0;                 ///< The execution.
  std::vector<std::size_t> peaks;  ///< Per step: the most while it and the steps repeated for it run.
  std::vector<Execution> executions;
  std::vector<Instance> instances;
  std::vector<Use> uses;
};

/// Works out schedules. Keeps its memory, because searches make thousands.
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
  std::vector<char> kept_;                     // per content: whether it must be there before the step being looked at
  std::vector<int> repeated_for_;              // per step: the last step that it was repeated for
  std::vector<int> wanted_;                    // per content: the same
  std::vector<int> repeats_, wishes_;          // the steps and contents of all stages, from the last stage to the first
  std::vector<int> repeats_end_, wishes_end_;  // per stage
  std::vector<int> present_;                   // per content: its instance
  std::vector<std::int64_t> change_;           // of the bytes in use, per execution
};

}  // namespace xtape
