#include <algorithm>
#include <optional>

#include "player/plan/budget.hpp"
#include "player/program/passes.hpp"

namespace xtape {

namespace {
constexpr RepeatSteps ways_to_repeat[] = {RepeatSteps::elementwise, RepeatSteps::all};

double seconds_of(const PlannedProgram& planned) {
  double seconds = 0;
  for (const PlannedStep& step : planned.steps) seconds += predicted_seconds(step.cost);
  return seconds;
}
bool repeats(const PlannedProgram& planned) {
  return std::any_of(planned.steps.begin(), planned.steps.end(), [](const PlannedStep& step) { return step.again; });
}

/// The fastest of the plans that keep to the limit.
class Fastest {
 public:
  Fastest(const PlayerOptions& options, int threads, const BodyKernels& bodies)
      : options_(options), threads_(threads), bodies_(bodies) {}

  void consider(Program program) {
    try {
      PlannedProgram planned = plan(std::move(program), options_, threads_, bodies_);
      if (!best_ || seconds_of(planned) < seconds_of(*best_)) best_ = std::move(planned);
    } catch (const LimitError& error) {
      if (!least_ || error.least() < least_->least()) least_.emplace(error);
    }
  }
  const std::optional<PlannedProgram>& best() const { return best_; }
  PlannedProgram take() {
    if (!best_) throw LimitError(*least_);
    return std::move(*best_);
  }

 private:
  const PlayerOptions& options_;
  int threads_;
  const BodyKernels& bodies_;
  std::optional<PlannedProgram> best_;
  std::optional<LimitError> least_;
};
}  // namespace

PlannedProgram plan_within_limit(const Tape& tape, const Vars& outputs, const PlayerOptions& options, int threads,
                                 const BodyKernels& bodies) {
  Fastest fastest(options, threads, bodies);
  fastest.consider(optimised(tape, outputs, options));
  if (options.memory == 0 || (fastest.best() && !repeats(*fastest.best()))) return fastest.take();
  for (const RepeatSteps which : ways_to_repeat)
    if (std::optional<Program> program = with_repeated_steps(tape, outputs, options, which))
      fastest.consider(std::move(*program));
  return fastest.take();
}

std::vector<MemoryPoint> memory_curve(const Tape& tape, const Vars& outputs, const PlayerOptions& options, int threads,
                                      const BodyKernels& bodies) {
  std::vector<MemoryPoint> all = memory_curve(plan(optimised(tape, outputs, options), options, threads, bodies));
  for (const RepeatSteps which : ways_to_repeat)
    if (std::optional<Program> program = with_repeated_steps(tape, outputs, options, which)) {
      const std::vector<MemoryPoint> more = memory_curve(plan(std::move(*program), options, threads, bodies));
      all.insert(all.end(), more.begin(), more.end());
    }
  std::stable_sort(all.begin(), all.end(),
                   [](const MemoryPoint& a, const MemoryPoint& b) { return a.seconds < b.seconds; });
  std::vector<MemoryPoint> curve;
  for (const MemoryPoint& point : all)
    if (curve.empty() || point.bytes < curve.back().bytes) curve.push_back(point);
  return curve;
}

}  // namespace xtape
