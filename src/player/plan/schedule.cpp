#include "player/plan/schedule.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "kernels/table/scratch.hpp"
#include "player/plan/placement.hpp"

namespace xtape {

namespace {
/// Returns whether the operand fills its buffer with elements of this type.
bool fills(const PlannedProgram& planned, const BufferRef& ref, Dtype dtype) {
  return ref.byte_offset == 0 &&
         static_cast<std::size_t>(ref.dense_elements) * size_of(dtype) == planned.buffers[ref.buffer].bytes;
}

/// Returns the operands that the first result may overwrite, as far as the op and the types allow it.
std::vector<std::size_t> overwritable(const PlannedProgram& planned, const PlannedStep& step) {
  std::vector<std::size_t> inputs;
  if (!planned.in_place || step.is_copy()) return inputs;
  const Node& node = planned.program->node(step.node);
  const ValueType& output = node.outputs[0];
  find_overwritable(node, inputs);
  std::erase_if(inputs, [&](std::size_t k) {
    const ValueType& input = planned.program->tape.type(node.inputs[k]);
    return input.shape != output.shape || size_of(input.dtype) != size_of(output.dtype) ||
           !fills(planned, planned.in(step)[k], output.dtype) || !fills(planned, planned.out(step)[0], output.dtype);
  });
  return inputs;
}
}  // namespace

StepGraph::StepGraph(const PlannedProgram& planned) {
  std::vector<int> present(planned.buffers.size(), -1);  // the content of each buffer
  const auto fresh = [&](int number, ValueId of, Buffer::Role role) {
    const Buffer& buffer = planned.buffers[number];
    Content content;
    content.in_arena = buffer.kind == BufferKind::arena;
    content.held.of = of;
    content.held.role = role;
    content.held.bytes = buffer.bytes;
    content.bytes = whole_lines(buffer.bytes);
    contents.push_back(content);
    return present[number] = static_cast<int>(contents.size()) - 1;
  };
  for (const PlannedStep& step : planned.steps) {
    const auto in = planned.in(step), out = planned.out(step);
    const int now = static_cast<int>(steps.size());
    StepUse use;
    use.scratch = whole_lines(step.kernel->scratch_bytes);
    use.seconds = predicted_seconds(step.cost);
    for (const BufferRef& ref : in)
      use.in.push_back(present[ref.buffer] >= 0 ? present[ref.buffer] : fresh(ref.buffer, {}, Buffer::Role::value));
    for (std::size_t k = 0; k < out.size(); ++k) {
      const Buffer& buffer = planned.buffers[out[k].buffer];
      int& there = present[out[k].buffer];
      const bool whole = fills(planned, out[k], planned.types_of(step)[k].dtype);
      if (there >= 0 && whole) contents[there].until = now;
      if (there < 0 || whole)
        fresh(out[k].buffer, step.is_copy() ? buffer.of : ValueId{step.node, static_cast<std::int32_t>(k)},
              step.is_copy() ? buffer.role : Buffer::Role::value);
      std::vector<int>& writers = contents[there].writers;
      if (writers.empty() || writers.back() != now) writers.push_back(now);
      use.out.push_back(there);
    }
    for (const std::size_t k : overwritable(planned, step))
      if (contents[use.in[k]].in_arena && contents[use.out[0]].in_arena &&
          std::count(use.in.begin(), use.in.end(), use.in[k]) == 1)
        use.takes.push_back(static_cast<int>(k));
    steps.push_back(std::move(use));
  }
  find_blocks();
}

void StepGraph::find_blocks() {
  const int count = static_cast<int>(steps.size());
  for (Content& content : contents) content.repeatable = content.in_arena && !content.writers.empty();
  for (int s = 0; s < count; ++s)
    for (const int c : steps[s].in) {
      if (contents[c].writers.empty() || contents[c].writers.back() < s) continue;
      contents[c].repeatable = false;  // the step reads a part of it
      if (std::ranges::find(steps[s].out, c) != steps[s].out.end())
        for (const int twin : steps[s].out) contents[twin].repeatable = false;  // what the step read is gone
    }
  block_of.resize(steps.size());
  std::iota(block_of.begin(), block_of.end(), 0);
  for (bool changes = true; changes;) {
    changes = false;
    for (const Content& content : contents) {
      if (!content.repeatable) continue;
      int last = 0;
      for (const int writer : content.writers) last = std::max(last, block_of[writer]);
      for (const int writer : content.writers) changes = std::exchange(block_of[writer], last) != last || changes;
    }
  }
  blocks.resize(steps.size());
  for (int s = 0; s < count; ++s) blocks[block_of[s]].push_back(s);
}

std::vector<Lifetime> Schedule::lifetimes() const {
  std::vector<Lifetime> list;
  for (const Instance& instance : instances) {
    const bool own = instance.place == static_cast<int>(list.size());
    if (!own) list[instance.place].last = instance.last;
    list.push_back({own ? instance.bytes : 0, instance.first, instance.last});
  }
  return list;
}

void Scheduler::make(const Recomputations& choices, Schedule& schedule) {
  schedule.possible = find_executions(choices, schedule);
  if (!schedule.possible) return;
  schedule.instances.clear();
  schedule.operands.clear();
  present_.assign(graph_.contents.size(), -1);
  for (std::size_t e = 0; e < schedule.executions.size(); ++e) run(static_cast<int>(e), schedule);
  measure(schedule);
}

/// Returns whether a run of the step writes the content, or only temporary memory.
bool Scheduler::writes(int content, int step, int stage) const {
  return step == stage || graph_.contents[content].repeatable;
}

/// Marks the content as needed at the step. Returns whether it can be kept until the step.
bool Scheduler::need(int content, int step) {
  const Content& needed = graph_.contents[content];
  if (needed.in_arena) kept_[content] = 1;
  return needed.in_arena || step <= needed.until;
}

/// Goes from the last step to the first. Finds the contents that must be kept for each step, and the steps that run
/// again before it. Returns false if the choices are not possible.
bool Scheduler::find_executions(const Recomputations& choices, Schedule& schedule) {
  kept_.assign(graph_.contents.size(), 0);
  schedule.executions.clear();
  schedule.seconds = 0;
  bool possible = true;
  auto choice = choices.rbegin();
  const auto execute = [&](int step, int stage) {
    schedule.executions.push_back({stage, step});
    for (const int c : graph_.steps[step].out)
      if (writes(c, step, stage)) {
        kept_[c] = 0;
        if (graph_.contents[c].writers.front() != step) need(c, stage);
      }
    for (const int c : graph_.steps[step].in) possible = need(c, stage) && possible;
  };
  for (int step = static_cast<int>(graph_.steps.size()) - 1; step >= 0; --step) {
    execute(step, step);
    for (; choice != choices.rend() && choice->step == step; ++choice) {
      const std::vector<int>& block = graph_.blocks[choice->block];
      const auto is_missing = [&](int c) { return kept_[c] != 0 && graph_.contents[c].repeatable; };
      if (std::ranges::none_of(block, [&](int s) { return std::ranges::any_of(graph_.steps[s].out, is_missing); }))
        continue;
      for (auto writer = block.rbegin(); writer != block.rend(); ++writer) {
        schedule.seconds += graph_.steps[*writer].seconds;
        execute(*writer, step);
      }
    }
  }
  std::sort(schedule.executions.begin(), schedule.executions.end());
  return possible;
}

/// Finds or makes the instances that an execution uses.
void Scheduler::run(int number, Schedule& schedule) {
  Execution& execution = schedule.executions[number];
  const StepUse& use = graph_.steps[execution.step];
  const auto add = [&](int content, std::size_t bytes) {
    const int instance = static_cast<int>(schedule.instances.size());
    schedule.instances.push_back({content, bytes, number, number, instance});
    return instance;
  };
  const auto touch = [&](int content) {
    const int instance = present_[content];
    if (instance >= 0) schedule.instances[instance].last = number;
    schedule.operands.push_back(instance);
  };
  execution.first = schedule.operands.size();
  for (const int c : use.in) touch(c);
  for (const int c : use.out) {
    const Content& content = graph_.contents[c];
    if (!writes(c, execution.step, execution.stage)) {
      schedule.operands.push_back(add(c, content.bytes));
      continue;
    }
    const bool is_new = present_[c] < 0 || schedule.instances[present_[c]].first != number;
    if (content.in_arena && content.writers.front() == execution.step && is_new) present_[c] = add(c, content.bytes);
    touch(c);
  }
  execution.scratch = use.scratch > 0 ? add(-1, use.scratch) : -1;
}

/// Lets results reuse the memory of operands, and computes the bytes in use.
void Scheduler::measure(Schedule& schedule) {
  const int count = static_cast<int>(schedule.executions.size());
  change_.assign(static_cast<std::size_t>(count) + 1, 0);
  for (const Instance& instance : schedule.instances) {
    change_[instance.first] += static_cast<std::int64_t>(instance.bytes);
    change_[instance.last + 1] -= static_cast<std::int64_t>(instance.bytes);
  }
  schedule.peaks.assign(graph_.steps.size(), 0);
  schedule.peak = 0;
  std::size_t in_use = 0;
  for (int e = 0; e < count; ++e) {
    in_use += static_cast<std::size_t>(change_[e]);
    const Execution& execution = schedule.executions[e];
    const StepUse& use = graph_.steps[execution.step];
    std::size_t used = in_use;
    for (const int k : use.takes) {
      const Instance& from = schedule.instances[schedule.operands[execution.first + k]];
      if (from.last != e) continue;
      schedule.instances[schedule.operands[execution.first + use.in.size()]].place = from.place;
      used -= from.bytes;
      break;
    }
    schedule.peaks[execution.stage] = std::max(schedule.peaks[execution.stage], used);
    if (used > schedule.peak) {
      schedule.peak = used;
      schedule.peak_at = e;
    }
  }
}

}  // namespace xtape
