/// Which steps of a plan run again so that it needs less memory.
#pragma once

#include "schedule.hpp"

namespace xtape {

/// A way to play a plan.
struct Way {
  std::size_t peak = 0;  ///< Schedule::peak.
  double seconds = 0;    ///< Schedule::seconds.
  std::vector<Choice> choices;
};

/// Ways from the fastest, which repeats nothing, to the one with the lowest peak: each is slower than the one before it
/// and has a lower peak. They depend on nothing but the graph.
std::vector<Way> find_ways(const StepGraph& graph);

}  // namespace xtape
