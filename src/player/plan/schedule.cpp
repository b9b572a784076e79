#include "player/plan/schedule.hpp"

#include <algorithm>

#include "kernels/table/scratch.hpp"
#include "player/plan/placement.hpp"

namespace xtape {

namespace {
void add_once(std::vector<int>& list, int item) {
  if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
}

/// Returns whether the operand of this type fills its buffer.
bool fills(const BufferRef& ref, const Buffer& buffer, Dtype dtype) {
  return ref.byte_offset == 0 && static_cast<std::size_t>(ref.dense_elements) * size_of(dtype) == buffer.bytes;
}
/// Returns the inputs of a step that its first output may overwrite, as far as the op and the types allow it.
std::vector<std::size_t> inputs_to_take(const PlannedProgram& planned, const PlannedStep& step) {
  std::vector<std::size_t> inputs;
  if (!planned.in_place || step.is_copy()) return inputs;
  const Node& node = planned.program->node(step.node);
  const ValueType& output = node.outputs[0];
  std::vector<std::size_t> overwritable;
  find_overwritable(node, overwritable);
  for (const std::size_t k : overwritable) {
    const ValueType& input = planned.program->tape.type(node.inputs[k]);
    if (input.shape == output.shape && size_of(input.dtype) == size_of(output.dtype)) inputs.push_back(k);
  }
  return inputs;
}
}  // namespace

StepGraph::StepGraph(const PlannedProgram& planned) {
  std::vector<int> present(planned.buffers.size(), -1);  // the content of each buffer
  const auto fresh = [&](int buffer) {
    const Buffer& held = planned.buffers[buffer];
    Content content;
    content.buffer = buffer;
    content.bytes = whole_lines(held.bytes);
    content.in_arena = held.kind == BufferKind::arena;
    contents.push_back(content);
    return present[buffer] = static_cast<int>(contents.size()) - 1;
  };
  for (std::size_t s = 0; s < planned.steps.size(); ++s) {
    const PlannedStep& planned_step = planned.steps[s];
    const auto in = planned.in(planned_step), out = planned.out(planned_step);
    const auto types = planned.types_of(planned_step);
    const int now = static_cast<int>(s);
    StepUse use;
    use.scratch = whole_lines(planned_step.kernel->scratch_bytes);
    use.seconds = predicted_seconds(planned_step.cost);
    for (const BufferRef& ref : in) {
      const int there = present[ref.buffer];
      use.in.push_back(there >= 0 ? there : fresh(ref.buffer));
      add_once(use.reads, use.in.back());
    }
    for (std::size_t k = 0; k < out.size(); ++k) {
      const BufferRef& ref = out[k];
      int& there = present[ref.buffer];
      const bool whole = fills(ref, planned.buffers[ref.buffer], types[k].dtype);
      const bool own = there >= 0 && std::find(use.out.begin(), use.out.end(), there) != use.out.end();
      if (there < 0) {
        fresh(ref.buffer);
      } else if (whole) {
        contents[there].until = now;
        fresh(ref.buffer);
      } else if (!own) {
        add_once(use.reads, there);
      }
      add_once(contents[there].writers, now);
      use.out.push_back(there);
      add_once(use.writes, there);
    }
    for (const std::size_t k : inputs_to_take(planned, planned_step)) {
      const int content = use.in[k];
      const Content &from = contents[content], &to = contents[use.out[0]];
      const auto filled = [&](const BufferRef& ref) {  // both types have the same element size
        return fills(ref, planned.buffers[ref.buffer], types[0].dtype);
      };
      if (from.in_arena && to.in_arena && filled(in[k]) && filled(out[0]) &&
          std::count(use.in.begin(), use.in.end(), content) == 1)
        use.takes.push_back(content);
    }
    steps.push_back(std::move(use));
  }
  for (std::size_t s = 0; s < steps.size(); ++s)
    for (const int c : steps[s].reads) {
      Content& content = contents[c];
      const bool writes =
          std::find(content.writers.begin(), content.writers.end(), static_cast<int>(s)) != content.writers.end();
      if (content.writers.empty() || (!writes && content.writers.back() > static_cast<int>(s)))
        content.repeatable = false;
    }
}

// Recomputations ------------------------------------------------------------------------------------------------------

bool Recomputations::has(Recomputation choice) const {
  const std::vector<int>& list = before(choice.step);
  return std::find(list.begin(), list.end(), choice.content) != list.end();
}

void Recomputations::flip(Recomputation choice) {
  std::vector<int>& list = at_[choice.step];
  const auto found = std::find(list.begin(), list.end(), choice.content);
  if (found != list.end()) {
    list.erase(found);
    return;
  }
  const auto later = [&](int a, int b) {
    const int last_a = graph_->contents[a].writers.back();
    const int last_b = graph_->contents[b].writers.back();
    return last_a != last_b ? last_a > last_b : a > b;
  };
  list.insert(std::upper_bound(list.begin(), list.end(), choice.content, later), choice.content);
}

std::vector<Recomputation> Recomputations::list() const {
  std::vector<Recomputation> all;
  for (std::size_t step = 0; step < at_.size(); ++step)
    for (const int content : at_[step]) all.push_back({static_cast<int>(step), content});
  return all;
}

Recomputation Recomputations::next(int content, int step) const {
  for (int later = step + 1; later < static_cast<int>(at_.size()); ++later)
    if (has({later, content})) return {later, content};
  return {0, -1};
}

// Schedules -----------------------------------------------------------------------------------------------------------

Scheduler::Scheduler(const StepGraph& graph)
    : graph_(graph), repeats_end_(graph.steps.size()), wishes_end_(graph.steps.size()) {}

void Scheduler::make(const Recomputations& choices, Schedule& schedule) {
  schedule.possible = find_repeats(choices, schedule);
  if (!schedule.possible) return;
  schedule.executions.clear();
  schedule.instances.clear();
  schedule.uses.clear();
  present_.assign(graph_.contents.size(), -1);
  std::fill(wanted_.begin(), wanted_.end(), -1);
  for (int stage = 0; stage < static_cast<int>(graph_.steps.size()); ++stage) {
    const auto at = static_cast<std::size_t>(stage);
    const bool last = at + 1 == graph_.steps.size();
    for (int i = last ? 0 : wishes_end_[at + 1]; i < wishes_end_[at]; ++i) wanted_[wishes_[i]] = stage;
    const auto begin = repeats_.begin() + (last ? 0 : repeats_end_[at + 1]), end = repeats_.begin() + repeats_end_[at];
    std::sort(begin, end);
    for (auto step = begin; step != end; ++step) run(*step, stage, schedule);
    run(stage, stage, schedule);
  }
  measure(schedule);
}

/// Marks the content as needed at the step. Returns whether it can be kept until the step.
bool Scheduler::need(int content, int step) {
  const Content& needed = graph_.contents[content];
  if (needed.in_arena) kept_[content] = 1;
  return needed.in_arena || step <= needed.until;
}

/// Goes from the last step to the first. Finds the contents that must be kept for each step, and the contents that are
/// computed again for this step. Returns false if the choices are not possible.
bool Scheduler::find_repeats(const Recomputations& choices, Schedule& schedule) {
  kept_.assign(graph_.contents.size(), 0);
  wanted_.assign(graph_.contents.size(), -1);
  repeated_for_.assign(graph_.steps.size(), -1);
  repeats_.clear();
  wishes_.clear();
  schedule.seconds = 0;
  for (int step = static_cast<int>(graph_.steps.size()) - 1; step >= 0; --step) {
    const StepUse& use = graph_.steps[step];
    for (const int c : use.writes)
      if (graph_.contents[c].writers.front() == step) kept_[c] = 0;
    for (const int c : use.reads)
      if (!need(c, step)) return false;
    for (const int c : choices.before(step)) {
      if (!kept_[c]) continue;
      kept_[c] = 0;
      wishes_.push_back(c);
      for (const int writer : graph_.contents[c].writers) {
        if (repeated_for_[writer] == step) continue;
        repeated_for_[writer] = step;
        repeats_.push_back(writer);
        schedule.seconds += graph_.steps[writer].seconds;
        for (const int input : graph_.steps[writer].reads)
          if (input != c && !need(input, step)) return false;
      }
    }
    repeats_end_[step] = static_cast<int>(repeats_.size());
    wishes_end_[step] = static_cast<int>(wishes_.size());
  }
  return true;
}

void Scheduler::run(int step, int stage, Schedule& schedule) {
  const int now = static_cast<int>(schedule.executions.size());
  const StepUse& use = graph_.steps[step];
  Execution execution{step, stage, static_cast<int>(schedule.uses.size()), 0};
  for (const int c : use.reads) {
    const int instance = present_[c];
    if (instance >= 0) schedule.instances[instance].last = now;
    schedule.uses.push_back({instance, c, false});
  }
  for (const int c : use.writes) {
    const Content& content = graph_.contents[c];
    const bool wanted = step == stage || wanted_[c] == stage;
    int instance = -1;
    if (!wanted || (content.in_arena && content.writers.front() == step)) {
      instance = static_cast<int>(schedule.instances.size());
      schedule.instances.push_back({c, now, now, -1});
      if (wanted) present_[c] = instance;
    } else if (content.in_arena) {  // another writer adds a part of the content
      instance = present_[c];
      schedule.instances[instance].last = now;
    }
    schedule.uses.push_back({instance, c, true});
  }
  execution.end_use = static_cast<int>(schedule.uses.size());
  schedule.executions.push_back(execution);
}

/// Lets results reuse the memory of operands, and computes the bytes in use.
void Scheduler::measure(Schedule& schedule) {
  const std::size_t count = schedule.executions.size();
  change_.assign(count + 1, 0);
  const auto bytes_of = [&](const Instance& instance) {
    return static_cast<std::int64_t>(graph_.contents[instance.content].bytes);
  };
  for (const Instance& instance : schedule.instances) {
    change_[instance.first] += bytes_of(instance);
    change_[static_cast<std::size_t>(instance.last) + 1] -= bytes_of(instance);
  }
  schedule.peaks.assign(graph_.steps.size(), 0);
  schedule.peak = 0;
  std::int64_t in_use = 0;
  for (std::size_t e = 0; e < count; ++e) {
    in_use += change_[e];
    const Execution& execution = schedule.executions[e];
    const StepUse& use = graph_.steps[execution.step];
    std::int64_t taken = 0;
    if (!use.takes.empty()) {
      const auto of = [&](int content, bool writes) {
        for (int u = execution.first_use; u < execution.end_use; ++u)
          if (const Use& each = schedule.uses[u]; each.content == content && each.writes == writes)
            return each.instance;
        return -1;
      };
      const int to = of(use.out[0], true);
      for (const int content : use.takes) {
        const int from = of(content, false);
        if (from < 0 || to < 0 || schedule.instances[from].last != static_cast<int>(e)) continue;
        schedule.instances[to].taken = from;
        taken = bytes_of(schedule.instances[to]);
        break;
      }
    }
    const auto used = static_cast<std::size_t>(in_use - taken) + use.scratch;
    std::size_t& most = schedule.peaks[execution.stage];
    most = std::max(most, used);
    if (used > schedule.peak) {
      schedule.peak = used;
      schedule.peak_at = static_cast<int>(e);
    }
  }
}

}  // namespace xtape
