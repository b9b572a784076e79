#include "player/plan/budget.hpp"

#include <algorithm>
#include <optional>

#include "player/plan/memory.hpp"
#include "player/program/passes.hpp"

namespace xtape {

namespace {
/// The steps of a plan, and the arena sizes of the ways to play them.
class Budget {
 public:
  explicit Budget(PlannedProgram& planned) : planned_(planned), outside_(bytes_outside(planned)), graph_(planned) {}

  const StepGraph& graph() const { return graph_; }

  /// Returns the memory and the time of a way.
  MemoryPoint point(const Way& way) {
    make_schedule(graph_, way.drops, schedule_);
    const std::size_t arena = assign_offsets(schedule_.lifetimes(), true).total;
    double seconds = schedule_.seconds;
    for (const StepUse& use : graph_.steps) seconds += use.seconds;
    return {arena + outside_, arena, seconds,
            static_cast<std::int64_t>(schedule_.executions.size() - graph_.steps.size())};
  }

  /// Changes the plan to the first of the ways that needs at most `memory` bytes. Returns whether there is one.
  bool fit(const std::vector<Way>& ways, std::size_t memory) {
    const std::size_t room = memory - std::min(memory, outside_);
    for (const Way& way : ways) {
      make_schedule(graph_, way.drops, schedule_);
      if (memory < outside_ || !schedule_.possible || schedule_.peak > room) continue;
      if (assign_offsets(schedule_.lifetimes(), true, room).total > room) continue;
      rewrite();
      return true;
    }
    return false;
  }

  /// Throws LimitError, which states the memory that the smallest way needs.
  [[noreturn]] void too_small(const std::vector<Way>& ways, std::size_t memory) {
    const auto bytes_of = [&](const Way& way) { return point(way).bytes; };
    const std::size_t least = bytes_of(*std::ranges::min_element(ways, {}, bytes_of));
    std::string most;
    const auto highest = std::ranges::find(ways, least, bytes_of);  // makes its schedule again
    if (highest != ways.end() && schedule_.peak > 0)
      most = bytes_text(least - outside_) + " at " +
             described(planned_, planned_.steps[schedule_.executions[schedule_.peak_at].step]);
    throw LimitError("the plan needs at least " + exact_text(least) + ", but its memory limit is " +
                         exact_text(memory) + ": " + bytes_text(outside_) +
                         " for parameters, outputs, carries and inputs" + (most.empty() ? "" : ", and " + most),
                     least, most);
  }

 private:
  static std::string exact_text(std::size_t bytes) {
    return bytes < 1024 ? bytes_text(bytes) : bytes_text(bytes) + " (" + std::to_string(bytes) + " bytes)";
  }

  /// Replaces the steps of the plan by those of the schedule, and its arena buffers by new buffers.
  void rewrite() {
    for (Buffer& buffer : planned_.buffers) buffer.first = buffer.last = -1;
    const int first = static_cast<int>(planned_.buffers.size());
    for (const Instance& instance : schedule_.instances) {
      Buffer& buffer = planned_.buffers.emplace_back();
      if (instance.content >= 0) buffer = graph_.contents[instance.content].held;
    }
    const std::vector<PlannedStep> steps = std::move(planned_.steps);
    const std::vector<BufferRef> operands = std::move(planned_.operands);
    planned_.steps.clear();
    planned_.operands.clear();
    for (const Execution& execution : schedule_.executions) {
      PlannedStep step = steps[execution.step];
      step.again = execution.step != execution.stage;
      for (std::size_t k = 0; k < std::size_t{step.inputs} + step.outputs; ++k) {
        BufferRef ref = operands[step.first + k];
        if (const int instance = schedule_.operands[execution.first + k]; instance >= 0)
          ref.buffer = first + schedule_.instances[instance].place;
        planned_.operands.push_back(ref);
      }
      step.first = planned_.operands.size() - step.inputs - step.outputs;
      if (execution.scratch >= 0) {
        step.scratch = first + execution.scratch;
        Buffer& buffer = planned_.buffers[step.scratch];
        buffer.of = {step.node, 0};
        buffer.role = Buffer::Role::scratch;
        buffer.bytes = schedule_.instances[execution.scratch].bytes;
      }
      planned_.steps.push_back(std::move(step));
    }
  }

  PlannedProgram& planned_;
  std::size_t outside_;
  StepGraph graph_;
  Schedule schedule_;
};
}  // namespace

std::vector<Way>& KnownWays::of(const StepGraph& graph) {
  std::vector<int> structure;  // everything that determines which drops are possible
  for (const StepUse& use : graph.steps)
    for (const std::vector<int>& list : {use.in, use.out}) {
      structure.push_back(static_cast<int>(list.size()));
      structure.insert(structure.end(), list.begin(), list.end());
    }
  for (const Content& content : graph.contents)
    structure.insert(structure.end(), {content.in_arena ? 1 : 0, content.repeatable ? 1 : 0, content.until});
  return ways_[structure];
}

std::size_t bytes_outside(const PlannedProgram& planned) {
  std::size_t sum = 0;
  for (const Buffer& buffer : planned.buffers)
    if (buffer.counts() && buffer.kind != BufferKind::arena) sum += buffer.bytes;
  return sum;
}

void fit_memory(PlannedProgram& planned, std::size_t memory, KnownWays& known) {
  constexpr std::size_t most_known = 2000;
  Budget budget(planned);
  std::vector<Way>& ways = known.of(budget.graph());
  if (budget.fit(ways, memory)) return;
  const std::vector<Way> found = find_ways(budget.graph());
  ++known.searches;
  ways.insert(ways.begin(), found.begin(), found.end());
  if (ways.size() > most_known) ways.resize(most_known);
  if (!budget.fit(found, memory)) budget.too_small(found, memory);
}

std::vector<MemoryPoint> memory_curve(PlannedProgram planned) {
  Budget budget(planned);
  std::vector<MemoryPoint> curve;
  for (const Way& way : find_ways(budget.graph())) {
    MemoryPoint point = budget.point(way);
    if (way.drops.empty() && planned.arena_bytes < point.arena_bytes) {  // the plan without any repetition
      point.bytes -= point.arena_bytes - planned.arena_bytes;
      point.arena_bytes = planned.arena_bytes;
    }
    if (curve.empty() || point.bytes < curve.back().bytes) curve.push_back(point);
  }
  return curve;
}

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
