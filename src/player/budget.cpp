#include "budget.hpp"

#include <algorithm>

#include "memory.hpp"
#include "recompute.hpp"
#include "shortage.hpp"

namespace xtape {

namespace {
/// The buffers of a schedule in the arena.
struct ArenaBuffers {
  std::vector<int> of_instance;  ///< Per instance.
  std::vector<int> of_scratch;   ///< Per execution; -1: none.
  std::vector<int> contents;     ///< Per buffer: the first content that it holds; -1 for scratch.
  std::vector<Lifetime> lifetimes;

  ArenaBuffers(const StepGraph& graph, const Schedule& schedule) : of_scratch(schedule.executions.size(), -1) {
    for (const Instance& instance : schedule.instances) {
      int buffer = instance.taken < 0 ? -1 : of_instance[static_cast<std::size_t>(instance.taken)];
      if (buffer < 0)
        buffer =
            add(instance.content, graph.contents[static_cast<std::size_t>(instance.content)].bytes, instance.first);
      lifetimes[static_cast<std::size_t>(buffer)].last = instance.last;
      of_instance.push_back(buffer);
    }
    for (std::size_t e = 0; e < schedule.executions.size(); ++e)
      if (const StepUse& use = graph.steps[static_cast<std::size_t>(schedule.executions[e].step)]; use.scratch > 0)
        of_scratch[e] = add(-1, use.scratch, static_cast<int>(e));
  }

 private:
  int add(int content, std::size_t bytes, int first) {
    contents.push_back(content);
    lifetimes.push_back({bytes, first, first});
    return static_cast<int>(lifetimes.size()) - 1;
  }
};

/// A plan's ways, and the arenas that they need.
class Budget {
 public:
  explicit Budget(const PlannedProgram& planned)
      : planned_(planned),
        outside_(bytes_outside(planned)),
        graph_(planned),
        scheduler_(graph_),
        ways_(find_ways(graph_)) {
    for (const StepUse& use : graph_.steps) seconds_ += use.seconds;
  }

  const std::vector<Way>& ways() const { return ways_; }
  const StepGraph& graph() const { return graph_; }

  Schedule schedule(const Way& way) {
    Choices choices(graph_);
    for (const Choice& choice : way.choices) choices.flip(choice);
    Schedule schedule;
    scheduler_.make(choices, schedule);
    return schedule;
  }
  MemoryPoint point(const Way& way) {
    const Schedule made = schedule(way);
    const std::size_t arena = assign_offsets(ArenaBuffers(graph_, made).lifetimes, true).total;
    return {arena + outside_, arena, seconds_ + way.seconds,
            static_cast<std::int64_t>(made.executions.size() - graph_.steps.size())};
  }

  /// Says what the way with the least memory needs.
  [[noreturn]] void too_small(std::size_t memory) {
    const Way* smallest = nullptr;
    std::size_t least = 0;
    for (const Way& way : ways_)
      if (const std::size_t bytes = point(way).bytes; smallest == nullptr || bytes < least) {
        smallest = &way;
        least = bytes;
      }
    const Schedule made = schedule(*smallest);
    std::string text = "the budget is " + exact_text(memory) + ", but the plan needs at least " + exact_text(least) +
                       ": " + bytes_text(outside_) + " for parameters, outputs, carries and inputs";
    if (made.peak > 0) {
      const PlannedStep& step =
          planned_.steps[static_cast<std::size_t>(made.executions[static_cast<std::size_t>(made.peak_at)].step)];
      text += ", and " + bytes_text(made.peak) + " at " + described(step);
    }
    throw MemoryError(text, least);
  }

 private:
  static std::string exact_text(std::size_t bytes) {
    return bytes < 1024 ? bytes_text(bytes) : bytes_text(bytes) + " (" + std::to_string(bytes) + " bytes)";
  }

  const PlannedProgram& planned_;
  std::size_t outside_;
  StepGraph graph_;
  Scheduler scheduler_;
  std::vector<Way> ways_;
  double seconds_ = 0;
};

/// Replaces the steps of a plan by those of a schedule, and its buffers in the arena by new ones.
class Rewriting {
 public:
  Rewriting(PlannedProgram& planned, const Program& program, const StepGraph& graph, const Schedule& schedule)
      : planned_(planned), program_(program), graph_(graph), schedule_(schedule), arena_(graph, schedule) {}

  void run() {
    for (Buffer& buffer : planned_.buffers) buffer.first = buffer.last = -1;
    first_buffer_ = planned_.buffers.size();
    for (std::size_t b = 0; b < arena_.lifetimes.size(); ++b) {
      Buffer buffer;
      buffer.bytes = arena_.lifetimes[b].bytes;
      buffer.scratch = arena_.contents[b] < 0;
      if (!buffer.scratch) buffer.name = name_of(arena_.contents[b]);
      planned_.buffers.push_back(std::move(buffer));
    }
    std::vector<PlannedStep> steps;
    for (std::size_t e = 0; e < schedule_.executions.size(); ++e) steps.push_back(step_of(e));
    planned_.steps = std::move(steps);
  }

 private:
  std::string name_of(int content) const {
    const Content& held = graph_.contents[static_cast<std::size_t>(content)];
    const PlannedStep& writer = planned_.steps[static_cast<std::size_t>(held.writers.front())];
    const StepUse& use = graph_.steps[static_cast<std::size_t>(held.writers.front())];
    const auto output = std::find(use.out.begin(), use.out.end(), content) - use.out.begin();
    const std::string& old = planned_.buffers[static_cast<std::size_t>(held.buffer)].name;
    return writer.node < 0 ? old : program_.label({writer.node, static_cast<std::int32_t>(output)});
  }

  PlannedStep step_of(std::size_t e) {
    const Execution& execution = schedule_.executions[e];
    const StepUse& use = graph_.steps[static_cast<std::size_t>(execution.step)];
    PlannedStep step = planned_.steps[static_cast<std::size_t>(execution.step)];
    step.again = execution.step != execution.stage;
    for (std::size_t k = 0; k < step.in.size(); ++k) place(step.in[k], execution, use.in[k], false);
    for (std::size_t k = 0; k < step.out.size(); ++k) place(step.out[k], execution, use.out[k], true);
    if (const int scratch = arena_.of_scratch[e]; scratch >= 0) {
      step.scratch.buffer = number_of(scratch);
      planned_.buffers[static_cast<std::size_t>(step.scratch.buffer)].name = "scratch of " + step.op;
    }
    return step;
  }

  void place(BufferRef& ref, const Execution& execution, int content, bool writes) const {
    for (int u = execution.first_use; u < execution.end_use; ++u) {
      const Use& use = schedule_.uses[static_cast<std::size_t>(u)];
      if (use.content == content && use.writes == writes && use.instance >= 0)
        ref.buffer = number_of(arena_.of_instance[static_cast<std::size_t>(use.instance)]);
    }
  }
  int number_of(int buffer) const { return static_cast<int>(first_buffer_) + buffer; }

  PlannedProgram& planned_;
  const Program& program_;
  const StepGraph& graph_;
  const Schedule& schedule_;
  ArenaBuffers arena_;
  std::size_t first_buffer_ = 0;
};
}  // namespace

std::size_t bytes_outside(const PlannedProgram& planned) {
  std::size_t sum = 0;
  for (const Buffer& buffer : planned.buffers)
    if (buffer.counts() && buffer.kind != BufferKind::arena) sum += buffer.bytes;
  return sum;
}

void fit_memory(PlannedProgram& planned, const Program& program, std::size_t memory) {
  const std::size_t outside = bytes_outside(planned);
  Budget budget(planned);
  for (const Way& way : budget.ways()) {
    if (way.peak + outside > memory || budget.point(way).bytes > memory) continue;
    const Schedule schedule = budget.schedule(way);
    Rewriting(planned, program, budget.graph(), schedule).run();
    return;
  }
  budget.too_small(memory);
}

std::vector<MemoryPoint> memory_curve(const PlannedProgram& planned) {
  Budget budget(planned);
  std::vector<MemoryPoint> curve;
  for (const Way& way : budget.ways())
    if (const MemoryPoint point = budget.point(way); curve.empty() || point.bytes < curve.back().bytes)
      curve.push_back(point);
  return curve;
}

}  // namespace xtape
