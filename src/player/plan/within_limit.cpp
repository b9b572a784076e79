#include <algorithm>
#include <optional>

#include "player/plan/budget.hpp"
#include "player/program/passes.hpp"

namespace xtape {

namespace {
/// Returns the program with these repetitions, or nothing if no scan can make them.
std::optional<Program> program_with(RepeatSteps which, const Tape& tape, const Vars& outputs,
                                    const PlayerOptions& options) {
  if (which == RepeatSteps::none) return optimised(tape, outputs, options);
  return with_repeated_steps(tape, outputs, options, which);
}
constexpr RepeatSteps all_ways[] = {RepeatSteps::none, RepeatSteps::elementwise, RepeatSteps::all};

double seconds_of(const PlannedProgram& planned) {
  double seconds = 0;
  for (const PlannedStep& step : planned.steps) seconds += predicted_seconds(step.cost);
  return seconds;
}
}  // namespace

PlannedProgram plan_within_limit(const Tape& tape, const Vars& outputs, const PlayerOptions& options, int threads,
                                 const BodyKernels& bodies) {
  std::optional<PlannedProgram> best;
  std::optional<LimitError> least;
  for (const RepeatSteps which : all_ways) {
    std::optional<Program> program = program_with(which, tape, outputs, options);
    if (!program) continue;
    try {
      PlannedProgram planned = plan(std::move(*program), options, threads, bodies);
      if (!best || seconds_of(planned) < seconds_of(*best)) best = std::move(planned);
    } catch (const LimitError& error) {
      if (!least || error.least() < least->least()) least.emplace(error);
    }
    if (which == RepeatSteps::none && best && std::ranges::none_of(best->steps, &PlannedStep::again)) break;
  }
  if (!best) throw LimitError(*least);
  return std::move(*best);
}

std::vector<MemoryPoint> memory_curve(const Tape& tape, const Vars& outputs, const PlayerOptions& options, int threads,
                                      const BodyKernels& bodies) {
  std::vector<MemoryPoint> all;
  for (const RepeatSteps which : all_ways)
    if (std::optional<Program> program = program_with(which, tape, outputs, options)) {
      const std::vector<MemoryPoint> more = memory_curve(plan(std::move(*program), options, threads, bodies));
      all.insert(all.end(), more.begin(), more.end());
    }
  std::ranges::stable_sort(all, {}, &MemoryPoint::seconds);
  std::vector<MemoryPoint> curve;
  for (const MemoryPoint& point : all)
    if (curve.empty() || point.bytes < curve.back().bytes) curve.push_back(point);
  return curve;
}

}  // namespace xtape
