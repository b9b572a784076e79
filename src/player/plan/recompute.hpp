/// Chooses which steps of a plan run again so that the plan needs less memory.
#pragma once

#include <map>

#include "player/plan/schedule.hpp"

namespace xtape {

/// A way to play a plan.
struct Way {
  std::size_t peak = 0;  ///< The peak of the schedule (Schedule::peak).
  double seconds = 0;    ///< The predicted time (Schedule::seconds).
  std::vector<Recomputation> choices;
};

/// Returns ways from the fastest, which repeats nothing, to the one with the lowest peak. Each way is slower than the
/// one before it and has a lower peak. The ways depend only on the graph.
std::vector<Way> find_ways(const StepGraph& graph);

/// Stores the ways found for the graphs of the players of one arena. The training plans for batches of different shapes
/// have the same steps with different sizes, and the same choices save memory in all of these plans. Searching again
/// would take most of the planning time.
class KnownWays {
 public:
  /// Returns the ways found for graphs of this structure. Each search has its own set of ways, and the latest set is
  /// first. The choices of the ways are possible in this graph, but their costs belong to other graphs.
  const std::vector<std::vector<Way>>& of(const StepGraph& graph) { return ways_[structure_of(graph)]; }
  void add(const StepGraph& graph, std::vector<Way> ways);
  std::int64_t searches() const { return searches_; }  ///< How often ways were added.

 private:
  static std::vector<int> structure_of(const StepGraph& graph);
  std::map<std::vector<int>, std::vector<std::vector<Way>>> ways_;
  std::int64_t searches_ = 0;
};

}  // namespace xtape
