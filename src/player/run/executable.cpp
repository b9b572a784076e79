// Executables are tapes compiled for chosen outputs.
#include "player/run/executable.hpp"

#include <algorithm>
#include <optional>

#include "base/threads/threads.hpp"
#include "player/plan/budget.hpp"
#include "player/program/passes.hpp"
#include "player/run/body_kernels.hpp"

namespace xtape {

Passes Passes::reference() {
  Passes passes;
  passes.fuse = passes.fold = passes.common = passes.accumulate = passes.elementwise = false;
  passes.views = passes.in_place = passes.reuse = false;
  passes.expand = true;
  return passes;
}

Passes Passes::unfused() {
  Passes passes;
  passes.fuse = passes.fold = passes.common = passes.accumulate = passes.elementwise = false;
  return passes;
}

namespace {
Plan description_of(const Executable& executable, const PlannedProgram& planned, const OpTable& rules) {
  Plan plan;
  for (const PlannedStep& step : planned.steps) {
    const Site& site = planned.site_of(step);
    plan.steps.push_back({planned.name_of(step), to_string(site), planned.types_text(step),
                          site.scope ? site.scope->path : "", step.cost.flops, step.cost.bytes,
                          predicted_seconds(step.cost), step.again});
  }
  for (const Buffer& buffer : planned.buffers) {
    if (!buffer.counts()) continue;
    plan.buffers.push_back(
        {planned.name_of(buffer), name_of(buffer.kind), buffer.bytes, buffer.offset, buffer.first, buffer.last});
    if (buffer.kind == BufferKind::output || buffer.kind == BufferKind::carry) plan.output_bytes += buffer.bytes;
    if (buffer.kind == BufferKind::constant || buffer.kind == BufferKind::input) plan.constant_bytes += buffer.bytes;
    if (buffer.kind == BufferKind::parameter) plan.parameter_bytes += buffer.bytes;
    if (buffer.role == Buffer::Role::scratch) plan.scratch_bytes = std::max(plan.scratch_bytes, buffer.bytes);
  }
  plan.arena_bytes = planned.arena_bytes;
  const PlayerOptions& options = executable.options();
  const Vars& outputs = executable.outputs();
  const Vars requested(outputs.begin(), outputs.end() - std::ssize(options.carries));
  plan.fusions = notes_on_rules(executable.tape(), rules, requested, options);
  return plan;
}
}  // namespace

const PlannedOutput& Executable::Data::output(const Var& var) const {
  const ValueId id = var.id();
  if (var.tape() != tape) throw HandleError("the var belongs to another tape than the player");
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].id() == id) return planned.outputs[i];
  throw Error("this var (#" + std::to_string(id.node) + " " + var.node().op->name +
              ") is not an output of the player: add it to the outputs");
}

namespace {
// Scans may compute values again to keep to a memory limit.
constexpr RepeatSteps all_repetitions[] = {RepeatSteps::none, RepeatSteps::elementwise, RepeatSteps::all};

double seconds_of(const PlannedProgram& planned) {
  double seconds = 0;
  for (const PlannedStep& step : planned.steps) seconds += predicted_seconds(step.cost);
  return seconds;
}

/// Returns the plan of the outputs. If the plan must repeat steps to keep to the limit of `options`, returns the
/// fastest of the plans with and without scans that compute values again. Throws LimitError if none of these plans
/// keeps to the limit. The error states the smallest memory that any of them needs.
PlannedProgram plan_within_limit(const Tape& tape, const Vars& outputs, const PlayerOptions& options, int threads) {
  std::optional<PlannedProgram> best;
  std::optional<LimitError> least;
  for (const RepeatSteps which : all_repetitions) {
    std::optional<Program> program = with_repeated_steps(tape, outputs, options, which);
    if (!program) continue;
    try {
      PlannedProgram planned = plan(std::move(*program), options, threads, body_kernels());
      if (!best || seconds_of(planned) < seconds_of(*best)) best = std::move(planned);
    } catch (const LimitError& error) {
      if (!least || error.least() < least->least()) least.emplace(error);
    }
    if (which == RepeatSteps::none && best && std::ranges::none_of(best->steps, &PlannedStep::again)) break;
  }
  if (!best) throw LimitError(*least);
  return std::move(*best);
}
}  // namespace

Executable compile(const Tape& tape, const Vars& outputs, const PlayerOptions& options) {
  auto data = std::make_shared<Executable::Data>();
  data->tape = tape;
  data->rules = &ops_of(tape);
  data->outputs = outputs;
  for (const Carry& carry : options.carries) data->outputs.push_back(carry.output);
  data->options = options;
  data->threads = thread_count(options.threads);
  data->planned = plan_within_limit(tape, outputs, options, data->threads);
  return Executable(std::move(data));
}

std::vector<MemoryPoint> memory_curve(const Tape& tape, const Vars& outputs, const PlayerOptions& options) {
  PlayerOptions unbounded = options;
  unbounded.memory = 0;
  const int threads = thread_count(options.threads);
  std::vector<MemoryPoint> all;
  for (const RepeatSteps which : all_repetitions)
    if (std::optional<Program> program = with_repeated_steps(tape, outputs, unbounded, which)) {
      const std::vector<MemoryPoint> more = memory_curve(plan(std::move(*program), unbounded, threads, body_kernels()));
      all.insert(all.end(), more.begin(), more.end());
    }
  std::ranges::stable_sort(all, {}, &MemoryPoint::seconds);
  std::vector<MemoryPoint> curve;  // leaves out plans that are slower than another plan but do not need less memory
  for (const MemoryPoint& point : all)
    if (curve.empty() || point.bytes < curve.back().bytes) curve.push_back(point);
  return curve;
}

const Plan& Executable::plan() const {
  std::call_once(data_->described, [&] { data_->plan = description_of(*this, data_->planned, *data_->rules); });
  return data_->plan;
}
int Executable::threads() const {
  return data_->threads;
}
const Tape& Executable::tape() const {
  return data_->tape;
}
const Vars& Executable::outputs() const {
  return data_->outputs;
}
const PlayerOptions& Executable::options() const {
  return data_->options;
}

}  // namespace xtape
