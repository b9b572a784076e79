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
         static_cast<std::size_t>(bytes_of(dtype, ref.dense_elements)) == planned.buffers[ref.buffer].bytes;
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
    return input.shape != output.shape || bytes_of(input) != bytes_of(output) ||
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

namespace {
/// Runs the steps in order, and before each step those that compute its dropped operands again.
class Run {
 public:
  Run(const StepGraph& graph, const Drops& drops, Schedule& schedule)
      : graph_(graph), drops_(drops), schedule_(schedule), present_(graph.contents.size(), -1) {
    schedule_.possible = true;
    schedule_.seconds = 0;
    schedule_.executions.clear();
    schedule_.instances.clear();
    schedule_.operands.clear();
    for (int step = 0; step < static_cast<int>(graph_.steps.size()) && schedule_.possible; ++step) run(step, step);
    if (schedule_.possible) measure();
  }

 private:
  void run(int step, int stage) {
    const StepUse& use = graph_.steps[step];
    for (const int c : use.in) bring(c, stage);
    for (const int c : use.out)
      if (adds_part(c, step, stage)) bring(c, stage);
    const bool all_there = std::ranges::all_of(use.in, [&](int c) { return is_there(c, stage); });
    const int number = static_cast<int>(schedule_.executions.size());
    schedule_.possible = schedule_.possible && all_there && number < most_runs * static_cast<int>(graph_.steps.size());
    if (!schedule_.possible) return;
    if (step != stage) schedule_.seconds += use.seconds;
    Execution execution{stage, step, schedule_.operands.size(), use.in.size() + use.out.size()};
    for (const int c : use.in) touch(present_[c], number);
    for (const int c : use.out) {
      int instance = present_[c];
      if (!writes(c, step, stage))
        instance = add(c, graph_.contents[c].bytes, number);
      else if (graph_.contents[c].in_arena && !adds_part(c, step, stage) &&
               (instance < 0 || schedule_.instances[instance].first != number))
        instance = present_[c] = add(c, graph_.contents[c].bytes, number);
      touch(instance, number);
    }
    if (use.scratch > 0) execution.scratch = add(-1, use.scratch, number);
    schedule_.executions.push_back(execution);
    for (auto drop = std::ranges::lower_bound(drops_, Drop{stage, step, 0});
         drop != drops_.end() && drop->stage == stage && drop->step == step; ++drop)
      present_[drop->content] = -1;
  }

  /// Computes the content again if it was dropped.
  void bring(int content, int stage) {
    if (is_there(content, stage) || !graph_.contents[content].repeatable) return;
    for (const int step : graph_.block(content))
      if (schedule_.possible) run(step, stage);
  }
  bool is_there(int content, int stage) const {
    const Content& wanted = graph_.contents[content];
    return wanted.in_arena ? wanted.writers.empty() || present_[content] >= 0 : stage <= wanted.until;
  }
  /// Returns whether a run of the step writes the content, or only temporary memory.
  bool writes(int content, int step, int stage) const { return step == stage || graph_.contents[content].repeatable; }
  bool adds_part(int content, int step, int stage) const {
    return writes(content, step, stage) && graph_.contents[content].writers.front() != step;
  }

  int add(int content, std::size_t bytes, int number) {
    const int instance = static_cast<int>(schedule_.instances.size());
    schedule_.instances.push_back({content, bytes, number, number, instance});
    return instance;
  }
  void touch(int instance, int number) {
    if (instance >= 0) schedule_.instances[instance].last = number;
    schedule_.operands.push_back(instance);
  }

  /// Lets results reuse the memory of operands, and computes the bytes in use.
  void measure() {
    const int count = static_cast<int>(schedule_.executions.size());
    std::vector<std::size_t> change(static_cast<std::size_t>(count) + 1, 0);  // per execution; negative ones wrap
    for (const Instance& instance : schedule_.instances) {
      change[instance.first] += instance.bytes;
      change[instance.last + 1] -= instance.bytes;
    }
    schedule_.peaks.assign(graph_.steps.size(), 0);
    schedule_.peak = 0;
    std::size_t in_use = 0;
    for (int e = 0; e < count; ++e) {
      in_use += change[e];
      const Execution& execution = schedule_.executions[e];
      const StepUse& use = graph_.steps[execution.step];
      std::size_t used = in_use;
      for (const int k : use.takes) {
        const Instance& from = schedule_.instances[schedule_.operands[execution.first + k]];
        if (from.last != e) continue;
        schedule_.instances[schedule_.operands[execution.first + use.in.size()]].place = from.place;
        used -= from.bytes;
        break;
      }
      schedule_.peaks[execution.stage] = std::max(schedule_.peaks[execution.stage], used);
      if (used > schedule_.peak) {
        schedule_.peak = used;
        schedule_.peak_at = e;
      }
    }
  }

  static constexpr int most_runs = 16;  // per step, on average
  const StepGraph& graph_;
  const Drops& drops_;
  Schedule& schedule_;
  std::vector<int> present_;  // per content: its instance, or -1 if it is not there
};
}  // namespace

void make_schedule(const StepGraph& graph, const Drops& drops, Schedule& schedule) {
  Run(graph, drops, schedule);
}

}  // namespace xtape
