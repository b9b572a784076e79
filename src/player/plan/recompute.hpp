/// Which steps of a plan run again so that it needs less memory.
#pragma once

#include <map>

#include "plan/schedule.hpp"

namespace xtape {

/// A way to play a plan.
struct Way {
  std::size_t peak = 0;  ///< Schedule::peak.
  double seconds = 0;    ///< Schedule::seconds.
  std::vector<Recomputation> choices;
};

/// Ways from the fastest, which repeats nothing, to the one with the lowest peak: each is slower than the one before it
/// and has a lower peak. They depend on nothing but the graph.
std::vector<Way> find_ways(const StepGraph& graph);

/// The ways found for the graphs of one arena's players. Training steps for batches of other shapes have the same steps
/// on other sizes, and what saves memory in one of them saves it in the others. Searching again would take most of the
/// time of planning.
class KnownWays {
 public:
  /// What was found for graphs of this structure: one set for each search, the latest first. Their choices are possible
  /// in this graph; what they cost was measured in others.
  const std::vector<std::vector<Way>>& of(const StepGraph& graph) { return ways_[structure_of(graph)]; }
  void add(const StepGraph& graph, std::vector<Way> ways);
  std::int64_t searches() const { return searches_; }  ///< How often ways were added.

 private:
  static std::vector<int> structure_of(const StepGraph& graph);
  std::map<std::vector<int>, std::vector<std::vector<Way>>> ways_;
  std::int64_t searches_ = 0;
};

}  // namespace xtape
