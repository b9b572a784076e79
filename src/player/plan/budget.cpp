#include "player/plan/budget.hpp"

#include <algorithm>
#include <optional>

#include "player/plan/memory.hpp"

namespace xtape {

namespace {
/// The arena buffers of a schedule.
struct ArenaBuffers {
  std::vector<int> of_instance;  ///< Per instance: its buffer.
  std::vector<int> of_scratch;   ///< Per execution: the buffer of its scratch; -1 for none.
  std::vector<int> contents;     ///< Per buffer: the first content that it holds; -1 for scratch.
  std::vector<Lifetime> lifetimes;

  ArenaBuffers(const StepGraph& graph, const Schedule& schedule) : of_scratch(schedule.executions.size(), -1) {
    for (const Instance& instance : schedule.instances) {
      int buffer = instance.taken < 0 ? -1 : of_instance[instance.taken];
      if (buffer < 0) buffer = add(instance.content, graph.contents[instance.content].bytes, instance.first);
      lifetimes[buffer].last = instance.last;
      of_instance.push_back(buffer);
    }
    for (std::size_t e = 0; e < schedule.executions.size(); ++e)
      if (const StepUse& use = graph.steps[schedule.executions[e].step]; use.scratch > 0)
        of_scratch[e] = add(-1, use.scratch, static_cast<int>(e));
  }

 private:
  int add(int content, std::size_t bytes, int first) {
    contents.push_back(content);
    lifetimes.push_back({bytes, first, first});
    return static_cast<int>(lifetimes.size()) - 1;
  }
};

/// The steps of a plan, and the arena sizes of the ways to play them.
class Budget {
 public:
  explicit Budget(const PlannedProgram& planned)
      : planned_(planned), outside_(bytes_outside(planned)), graph_(planned), scheduler_(graph_) {
    for (const StepUse& use : graph_.steps) seconds_ += use.seconds;
  }

  const StepGraph& graph() const { return graph_; }

  Schedule schedule(const Way& way) {
    Recomputations choices(graph_);
    for (const Recomputation& choice : way.choices) choices.flip(choice);
    Schedule schedule;
    scheduler_.make(choices, schedule);
    return schedule;
  }
  MemoryPoint point(const Way& way) {
    const Schedule made = schedule(way);
    const std::size_t arena = arena_of(made, 0);
    return {arena + outside_, arena, seconds_ + way.seconds,
            static_cast<std::int64_t>(made.executions.size() - graph_.steps.size())};
  }
  /// Returns the schedule of the first way in `ways` that needs at most `memory` bytes, or nothing if there is none.
  std::optional<Schedule> fitting(const std::vector<Way>& ways, std::size_t memory) {
    if (memory < outside_) return std::nullopt;
    const std::size_t room = memory - outside_;
    for (const Way& way : ways)
      if (Schedule made = schedule(way); made.possible && made.peak <= room && arena_of(made, room) <= room)
        return made;
    return std::nullopt;
  }

  /// Throws LimitError, which states the memory that the smallest way needs.
  [[noreturn]] void too_small(const std::vector<Way>& ways, std::size_t memory) {
    const Way* smallest = nullptr;
    std::size_t least = 0;
    for (const Way& way : ways)
      if (const std::size_t bytes = point(way).bytes; smallest == nullptr || bytes < least) {
        smallest = &way;
        least = bytes;
      }
    const Schedule made = schedule(*smallest);
    std::string most;
    if (made.peak > 0) {
      const PlannedStep& step = planned_.steps[made.executions[made.peak_at].step];
      most = bytes_text(least - outside_) + " at " + described(planned_, step);
    }
    throw LimitError("the plan needs at least " + exact_text(least) + ", but its memory limit is " +
                         exact_text(memory) + ": " + bytes_text(outside_) +
                         " for parameters, outputs, carries and inputs" + (most.empty() ? "" : ", and " + most),
                     least, most);
  }

 private:
  static std::string exact_text(std::size_t bytes) {
    return bytes < 1024 ? bytes_text(bytes) : bytes_text(bytes) + " (" + std::to_string(bytes) + " bytes)";
  }
  /// Returns the size of the smallest arena found. The search stops at the first arena of at most `enough` bytes.
  std::size_t arena_of(const Schedule& schedule, std::size_t enough) const {
    return assign_offsets(ArenaBuffers(graph_, schedule).lifetimes, true, enough).total;
  }

  const PlannedProgram& planned_;
  std::size_t outside_;
  StepGraph graph_;
  Scheduler scheduler_;
  double seconds_ = 0;
};

/// Replaces the steps of a plan by the steps of a schedule, and its arena buffers by new buffers.
class Rewriting {
 public:
  Rewriting(PlannedProgram& planned, const StepGraph& graph, const Schedule& schedule)
      : planned_(planned), graph_(graph), schedule_(schedule), arena_(graph, schedule) {}

  void run() {
    for (Buffer& buffer : planned_.buffers) buffer.first = buffer.last = -1;
    first_buffer_ = planned_.buffers.size();
    for (std::size_t b = 0; b < arena_.lifetimes.size(); ++b) {
      Buffer buffer;
      buffer.bytes = arena_.lifetimes[b].bytes;
      if (arena_.contents[b] >= 0) name(buffer, arena_.contents[b]);
      planned_.buffers.push_back(std::move(buffer));
    }
    std::vector<PlannedStep> steps;
    for (std::size_t e = 0; e < schedule_.executions.size(); ++e) steps.push_back(step_of(e));
    planned_.steps = std::move(steps);
    planned_.operands = std::move(operands_);
  }

 private:
  /// Names a buffer after its first content.
  void name(Buffer& buffer, int content) const {
    const Content& held = graph_.contents[content];
    const PlannedStep& writer = planned_.steps[held.writers.front()];
    const StepUse& use = graph_.steps[held.writers.front()];
    const Buffer& old = planned_.buffers[held.buffer];
    const auto output = std::find(use.out.begin(), use.out.end(), content) - use.out.begin();
    buffer.of = writer.is_copy() ? old.of : ValueId{writer.node, static_cast<std::int32_t>(output)};
    buffer.role = writer.is_copy() ? old.role : Buffer::Role::value;
  }

  PlannedStep step_of(std::size_t e) {
    const Execution& execution = schedule_.executions[e];
    const StepUse& use = graph_.steps[execution.step];
    PlannedStep step = planned_.steps[execution.step];
    step.again = execution.step != execution.stage;
    const std::span<const BufferRef> in = planned_.in(step), out = planned_.out(step);
    step.first = operands_.size();
    for (std::size_t k = 0; k < in.size(); ++k) operands_.push_back(placed(in[k], execution, use.in[k], false));
    for (std::size_t k = 0; k < out.size(); ++k) operands_.push_back(placed(out[k], execution, use.out[k], true));
    if (const int scratch = arena_.of_scratch[e]; scratch >= 0) {
      step.scratch = number_of(scratch);
      Buffer& buffer = planned_.buffers[step.scratch];
      buffer.of = {step.node, 0};
      buffer.role = Buffer::Role::scratch;
    }
    return step;
  }

  BufferRef placed(BufferRef ref, const Execution& execution, int content, bool writes) const {
    for (int u = execution.first_use; u < execution.end_use; ++u) {
      const Use& use = schedule_.uses[u];
      if (use.content == content && use.writes == writes && use.instance >= 0)
        ref.buffer = number_of(arena_.of_instance[use.instance]);
    }
    return ref;
  }
  int number_of(int buffer) const { return static_cast<int>(first_buffer_) + buffer; }

  PlannedProgram& planned_;
  const StepGraph& graph_;
  const Schedule& schedule_;
  ArenaBuffers arena_;
  std::size_t first_buffer_ = 0;
  std::vector<BufferRef> operands_;
};
}  // namespace

std::size_t bytes_outside(const PlannedProgram& planned) {
  std::size_t sum = 0;
  for (const Buffer& buffer : planned.buffers)
    if (buffer.counts() && buffer.kind != BufferKind::arena) sum += buffer.bytes;
  return sum;
}

void fit_memory(PlannedProgram& planned, std::size_t memory, KnownWays& known) {
  Budget budget(planned);
  std::optional<Schedule> fitting;
  for (const std::vector<Way>& ways : known.of(budget.graph()))
    if ((fitting = budget.fitting(ways, memory))) break;
  if (!fitting) {
    const std::vector<Way> ways = find_ways(budget.graph());
    fitting = budget.fitting(ways, memory);
    known.add(budget.graph(), ways);
    if (!fitting) budget.too_small(ways, memory);
  }
  Rewriting(planned, budget.graph(), *fitting).run();
}

std::vector<MemoryPoint> memory_curve(const PlannedProgram& planned) {
  Budget budget(planned);
  std::vector<MemoryPoint> curve;
  for (const Way& way : find_ways(budget.graph())) {
    MemoryPoint point = budget.point(way);
    if (way.choices.empty() && planned.arena_bytes < point.arena_bytes) {  // the plan without any repetition
      point.bytes -= point.arena_bytes - planned.arena_bytes;
      point.arena_bytes = planned.arena_bytes;
    }
    if (curve.empty() || point.bytes < curve.back().bytes) curve.push_back(point);
  }
  return curve;
}

}  // namespace xtape
