// Plays scans: the body is planned once and played step by step. The addresses of slices advance with each step.
#include <algorithm>
#include <span>

#include "base/threads/threads.hpp"
#include "kernels/table/kernels.hpp"
#include "kernels/table/loop_kernel.hpp"
#include "kernels/table/row_kernel.hpp"
#include "kernels/table/scratch.hpp"
#include "player/plan/placement.hpp"
#include "player/plan/plan.hpp"
#include "player/program/passes.hpp"
#include "player/program/scan_memory.hpp"
#include "player/run/body_kernels.hpp"

namespace xtape {

namespace {
/// The kernel of a step of the body's plan. The pointers of all steps form one list in the scratch of the scan. The
/// kernel of the scan has no data that changes, so several players may run it at once.
struct BodyKernel {
  std::shared_ptr<const Kernel> kernel;
  std::size_t in = 0, out = 0, scratch = 0, prepared = 0;  // indices of the first pointers of each kind
  const RowKernel* rows = nullptr;                         // the kernel, if it can compute rows
  Site site;
};

/// A call that a time step makes: a loop, if the kernel consists of loops, or else a call of the kernel, or of all
/// kernels of a run.
struct BodyCall {
  void (*plain)(const Tile&) = nullptr;  // the loop, if it is a plain function
  const TileFunction* loop = nullptr;    // any other loop
  std::size_t in = 0, out = 0;           // indices of its first pointers
  std::int64_t count = 0;
  std::size_t step = 0;  // for a call of a kernel: the index of the step, or of the first one of a run
  RowRun run = {};       // its `steps` is 0 for a call of one kernel
};

/// An operand whose address advances with each step.
struct MovingOperand {
  std::size_t index;
  std::int64_t stride;
};

/// Copies a state into the body's memory before the first step, and out of it after the last one.
struct StateCopies {
  std::size_t input = 0, output = 0;  // indices of the scan's input and output
  StepOperand before, after;          // in the body's memory; `before` is set only if the body reads the state
  CopyFunction enter, leave, skip;    // `skip` copies from the input to the output if no step takes place
};

class ScanRun {
 public:
  ScanRun(const KernelCall& call, const PlayerOptions& outer, const std::vector<bool>& zeros)
      : form_(call.op.lowering.body.steps(call)) {
    make(call, outer, zeros);
  }

  std::size_t scratch_bytes() const { return scratch_bytes_; }
  Cost cost() const {
    const auto length = static_cast<double>(form_.length);
    return {cost_.flops * length + first_cost_.flops, cost_.bytes * length + first_cost_.bytes};
  }

  void run(const KernelArguments& arguments) const {
    void** const pointers = pointers_in(arguments);
    for (std::size_t i = 0; i < operands_.size(); ++i) pointers[i] = address(operands_[i], arguments);
    Tile* const tiles = tiles_in(pointers, arguments);
    bool begun = false;
    if (by_rows_) return run_by_rows(pointers, arguments);
    for (std::int64_t step = 0; step < form_.length;) {
      if (const std::int64_t skipped = skipped_from(step, begun, arguments); skipped > 0) {
        for (const StepZeros& zeros : zeros_) zeros.write(address(zeros.first, arguments), step, skipped);
        advance(pointers, skipped);
        step += skipped;
        continue;
      }
      if (!begun) begin(arguments);
      begun = true;
      run_calls(tiles, arguments);
      advance(pointers, 1);
      ++step;
    }
    finish(begun, arguments);
  }

 private:
  /// Runs before the first step that takes place.
  void begin(const KernelArguments& arguments) const {
    for (const StateCopies& state : states_)
      if (state.enter) state.enter(arguments.in[state.input], address(state.before, arguments));
    for (const BodyKernel& part : first_steps_) run(part, arguments);
    for (const BodyKernel& part : steps_)
      if (part.kernel->prepare) part.kernel->prepare(arguments_of(part, arguments));
  }

  /// Writes the final states. `begun`: whether a step has taken place.
  void finish(bool begun, const KernelArguments& arguments) const {
    for (const StateCopies& state : states_)
      if (begun)
        state.leave(address(state.after, arguments), arguments.out[state.output]);
      else
        state.skip(arguments.in[state.input], arguments.out[state.output]);
  }

  /// Computes all time steps of some rows, then of other rows. Each thread advances pointers of its own.
  void run_by_rows(void* const* first, const KernelArguments& arguments) const {
    begin(arguments);
    const RowRun& run = calls_[0].run;
    const auto all_steps = [&](std::int64_t begin, std::int64_t end, std::int64_t worker) {
      void** const pointers = pointers_in(arguments, 1 + worker);
      std::copy_n(first, operands_.size(), pointers);
      for (std::int64_t step = 0; step < form_.length; ++step) {
        run_rows(steps_, arguments, pointers, begin, end, worker);
        advance(pointers, 1);
      }
    };
    parallel_pieces(threads_, run.rows, run.grain, all_steps);
    finish(true, arguments);
  }

  /// Computes the rows [begin, end) with consecutive kernels.
  void run_rows(std::span<const BodyKernel> parts, const KernelArguments& arguments, void* const* pointers,
                std::int64_t begin, std::int64_t end, std::int64_t worker) const {
    for (const BodyKernel& part : parts)
      part.rows->compute(arguments_of(part, arguments, pointers), begin, end, worker);
  }

  /// Returns the addresses of the operands: list 0, or those that thread `list` - 1 advances by itself.
  void** pointers_in(const KernelArguments& arguments, std::int64_t list = 0) const {
    return reinterpret_cast<void**>(address(pointers_, arguments) + list * list_bytes());
  }
  std::int64_t list_bytes() const { return static_cast<std::int64_t>(whole_lines(operands_.size() * sizeof(void*))); }
  void advance(void** pointers, std::int64_t steps) const {
    for (const MovingOperand& each : moving_)
      pointers[each.index] = static_cast<std::byte*>(pointers[each.index]) + each.stride * steps;
  }

  /// Returns how many steps from `step` on do not take place. The states then stay unchanged. If the condition is a
  /// state, no later step takes place either.
  std::int64_t skipped_from(std::int64_t step, bool begun, const KernelArguments& arguments) const {
    if (form_.condition < 0) return 0;
    const auto place = static_cast<std::size_t>(form_.condition);
    const auto holds = [](const void* flag) { return *static_cast<const bool*>(flag); };
    if (place >= form_.sequences()) {
      const StateCopies& state = states_[place - form_.sequences()];
      return holds(begun ? address(state.after, arguments) : arguments.in[place]) ? 0 : form_.length - step;
    }
    const std::byte* flags = address(external_[place], arguments);
    std::int64_t end = step;
    while (end < form_.length && !holds(flags + external_[place].stride * end)) ++end;
    return end - step;
  }

  /// Returns the arguments of the loops. They are the same at each step, because the list `pointers` stays at its
  /// address.
  Tile* tiles_in(void** pointers, const KernelArguments& arguments) const {
    auto* const tiles = reinterpret_cast<Tile*>(address(tiles_, arguments));
    for (std::size_t i = 0; i < calls_.size(); ++i)
      tiles[i] = {pointers + calls_[i].in, pointers + calls_[i].out, 0, calls_[i].count, arguments.step};
    return tiles;
  }

  void run_calls(const Tile* tile, const KernelArguments& arguments) const {
    for (const BodyCall& call : calls_) {
      if (call.plain != nullptr)
        call.plain(*tile);
      else if (call.loop != nullptr)
        (*call.loop)(*tile);
      else if (call.run.steps > 0)
        parallel_pieces(threads_, call.run.rows, call.run.grain,
                        [&](std::int64_t begin, std::int64_t end, std::int64_t worker) {
                          run_rows(std::span(steps_).subspan(call.step, call.run.steps), arguments,
                                   pointers_in(arguments), begin, end, worker);
                        });
      else
        run(steps_[call.step], arguments);
      ++tile;
    }
  }

  void run(const BodyKernel& part, const KernelArguments& arguments) const {
    try {
      part.kernel->run(arguments_of(part, arguments));
    } catch (Error& error) {
      name_call(error, part.site);
      throw;
    }
  }

  /// Returns the layout of one slice of a stacked array. Its offset is the offset of the array.
  static Layout slice_of(const Layout& layout, std::int64_t axis) {
    Layout slice = layout;
    slice.shape.erase(static_cast<std::size_t>(axis));
    slice.strides.erase(static_cast<std::size_t>(axis));
    return slice;
  }

  KernelArguments arguments_of(const BodyKernel& part, const KernelArguments& arguments) const {
    return arguments_of(part, arguments, pointers_in(arguments));
  }
  static KernelArguments arguments_of(const BodyKernel& part, const KernelArguments& arguments, void* const* pointers) {
    return {pointers + part.in, pointers + part.out, pointers[part.scratch], arguments.step, pointers[part.prepared]};
  }

  void make(const KernelCall& call, const PlayerOptions& outer, const std::vector<bool>& zeros) {
    threads_ = call.threads;
    const Tape& body = *call.body;
    const std::vector<ValueId> inputs = body.inputs();
    const std::size_t first_state = form_.sequences();
    const std::size_t first_alike = first_state + static_cast<std::size_t>(form_.states);
    PlayerOptions options;
    options.passes = outer.passes;
    options.seed = outer.seed;
    options.precision = outer.precision;
    options.bits = outer.bits;
    ExternalBuffers external;
    const bool all_take_place = form_.condition < 0;
    external.times = all_take_place ? form_.length : 1;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      if (k >= first_state && k < first_alike) {
        options.carries.push_back({body.var(inputs[k]), body.var(body.results()[form_.stacked() + k - first_state])});
        continue;
      }
      const bool moves = k < first_state;
      external.fixed.push_back(!moves);
      external.inputs.emplace_back(body.node(inputs[k].node).name,
                                   moves ? slice_of(call.in[k], form_.input_axes[k]) : call.in[k]);
      add_external(StepOperand::From::in, k, moves ? call.in[k].strides[form_.input_axes[k]] : 0, call.dtype(k));
    }
    Vars outputs;
    for (std::size_t k = 0; k < form_.stacked(); ++k) {
      outputs.push_back(body.var(body.results()[k]));
      external.outputs.push_back(slice_of(call.out[k], form_.output_axes[k]));
      add_external(StepOperand::From::out, k, call.out[k].strides[form_.output_axes[k]], call.outputs[k].dtype);
      if (form_.condition >= 0 && zeros[k]) add_zeros(external.outputs.back(), call.outputs[k].dtype, call.threads);
    }
    const PlannedProgram planned =
        plan(optimised(body, outputs, options), options, call.threads, body_kernels(), external);
    place_buffers(planned);
    for (std::size_t i = 0; i < planned.steps.size(); ++i) add_step(planned, planned.steps[i], planned.run_of(i));
    by_rows_ = all_take_place && form_.length > 0 && calls_.size() == 1 && calls_[0].run.steps > 0;
    for (std::size_t i = 0; i < operands_.size(); ++i)
      if (operands_[i].stride != 0) moving_.push_back({i, operands_[i].stride});
    pointers_ = own(static_cast<std::size_t>(list_bytes() * (by_rows_ ? 1 + threads_ : 1)));
    tiles_ = own(calls_.size() * sizeof(Tile));
    for (std::size_t j = 0; j < static_cast<std::size_t>(form_.states); ++j) add_state(call, planned, j);
  }

  /// Adds the next external memory. Steps go forward from its beginning, or in reverse order from its end.
  void add_external(StepOperand::From from, std::size_t number, std::int64_t stride, Dtype dtype) {
    const std::int64_t bytes = stride * static_cast<std::int64_t>(size_of(dtype));
    StepOperand operand{from, number, nullptr, 0, bytes};
    if (form_.reverse) {
      operand.offset = bytes * std::max<std::int64_t>(0, form_.length - 1);
      operand.stride = -bytes;
    }
    external_.push_back(operand);
  }

  /// Adds zeros for the output whose memory was added last.
  void add_zeros(const Layout& slice, Dtype dtype, int threads) {
    Layout one = slice;
    one.offset = 0;
    std::fill(one.strides.begin(), one.strides.end(), 0);
    const std::size_t bytes = static_cast<std::size_t>(count_of(slice.shape)) * size_of(dtype);
    const CopyFunction fill = kernels().make_copy(dtype, one, slice, threads);
    zeros_.push_back({external_.back(), slice.contiguous() ? bytes : 0, fill});
  }

  /// Allocates `bytes` bytes of the scan's scratch.
  StepOperand own(std::size_t bytes) {
    StepOperand operand;
    operand.offset = static_cast<std::int64_t>(scratch_bytes_);
    scratch_bytes_ += whole_lines(bytes);
    return operand;
  }

  /// Locates the body's buffers. The buffers that the body writes are in the scratch of the scan, except for external
  /// buffers.
  void place_buffers(const PlannedProgram& planned) {
    own(planned.arena_bytes);
    for (const Buffer& buffer : planned.buffers) {
      StepOperand operand;
      if (buffer.kind == BufferKind::arena) {
        operand.offset = static_cast<std::int64_t>(buffer.offset);
      } else if (buffer.kind == BufferKind::external) {
        operand = external_[buffer.number];
      } else if (buffer.kind == BufferKind::output || buffer.kind == BufferKind::carry) {
        operand = own(buffer.bytes);
      } else {
        operand.from = StepOperand::From::fixed;
        held_.push_back(planned.memory[buffer.number]);
        operand.fixed = static_cast<std::byte*>(held_.back().data());
      }
      buffers_.push_back(operand);
    }
  }

  StepOperand at(const BufferRef& ref) const {
    StepOperand operand = buffers_[ref.buffer];
    operand.offset += ref.byte_offset;
    return operand;
  }

  /// Adds a step, which belongs to a run if `run` is not null.
  void add_step(const PlannedProgram& planned, const PlannedStep& step, const RowRun* run) {
    const LoopKernel* kernel = loops_of(*step.kernel);
    if (kernel != nullptr && !step.once) return add_loops(planned, step, *kernel);
    BodyKernel made;
    made.in = operands_.size();
    for (const BufferRef& ref : planned.in(step)) operands_.push_back(at(ref));
    made.out = operands_.size();
    for (const BufferRef& ref : planned.out(step)) operands_.push_back(at(ref));
    made.scratch = operands_.size();
    operands_.push_back(step.scratch >= 0 ? at({step.scratch}) : StepOperand{});
    made.prepared = operands_.size();
    operands_.push_back(own(step.kernel->prepared_bytes));
    made.kernel = step.kernel;
    made.rows = row_kernel_of(*step.kernel);
    made.site = planned.site_of(step);
    (step.once ? first_cost_ : cost_) += step.cost;
    const bool is_first = run == nullptr || &planned.steps[run->first] == &step;
    if (!step.once && is_first) calls_.push_back({.step = steps_.size(), .run = run == nullptr ? RowRun{} : *run});
    (step.once ? first_steps_ : steps_).push_back(std::move(made));
  }

  void add_loops(const PlannedProgram& planned, const PlannedStep& step, const LoopKernel& kernel) {
    held_kernels_.push_back(step.kernel);
    const auto all = std::span(planned.operands).subspan(step.first);
    for (const LoopKernel::Loop& loop : kernel.loops) {
      const auto* plain = loop.run.target<void (*)(const Tile&)>();
      const std::size_t in = operands_.size();
      for (const auto [number, offset] : loop.operands) {
        operands_.push_back(number >= 0 ? at(all[static_cast<std::size_t>(number)]) : at({step.scratch}));
        operands_.back().offset += static_cast<std::int64_t>(offset);
      }
      calls_.push_back({.plain = plain != nullptr ? *plain : nullptr,
                        .loop = &loop.run,
                        .in = in,
                        .out = in + loop.inputs,
                        .count = loop.count});
    }
    cost_ += step.cost;
  }

  void add_state(const KernelCall& call, const PlannedProgram& planned, std::size_t j) {
    StateCopies state;
    state.input = form_.sequences() + j;
    state.output = form_.stacked() + j;
    const Layout &first = call.in[state.input], &last = call.out[state.output];
    const Dtype dtype = call.dtype(state.input);
    state.skip = kernels().make_copy(dtype, first, last, call.threads);
    const int carried = planned.carried[j];
    if (carried >= 0) {
      state.before = at({carried, 0});
      state.enter = kernels().make_copy(dtype, first, Layout::dense(first.shape), call.threads);
    }
    const PlannedOutput& output = planned.outputs[form_.stacked() + j];
    state.after = at({output.buffer, 0});
    state.leave = kernels().make_copy(dtype, output.layout, last, call.threads);
    states_.push_back(std::move(state));
  }

  Stepping form_;
  std::vector<StepOperand> external_;                        // by the number of the external buffer
  std::vector<StepOperand> buffers_;                         // the buffers of the body's plan
  std::vector<Array> held_;                                  // the body's constants, kept alive
  std::vector<std::shared_ptr<const Kernel>> held_kernels_;  // the kernels whose loops are called
  std::vector<BodyKernel> first_steps_;  // the steps of the body's plan that run once, before the first time step
  std::vector<BodyKernel> steps_;
  std::vector<BodyCall> calls_;        // the calls of one time step, in order
  std::vector<StepOperand> operands_;  // the operands of all steps
  StepOperand pointers_;               // the location of the operands' addresses at the current step
  StepOperand tiles_;                  // the location of the loops' arguments
  std::vector<MovingOperand> moving_;
  std::vector<StateCopies> states_;
  std::vector<StepZeros> zeros_;  // for the stacked outputs that need zeros
  int threads_ = 1;
  bool by_rows_ = false;  // whether threads compute all time steps of some rows, without meetings
  std::size_t scratch_bytes_ = 0;
  Cost cost_, first_cost_;  // the cost of one time step, and of `first_steps_`
};
Kernel make_stepped(const KernelCall& call, const PlayerOptions& options, const std::vector<bool>& zeros, Cost& cost) {
  const auto scan = std::make_shared<const ScanRun>(call, options, zeros);
  cost = scan->cost();
  return {[scan](const KernelArguments& arguments) { scan->run(arguments); }, scan->scratch_bytes()};
}
}  // namespace

const BodyKernels& body_kernels() {
  static constexpr BodyKernels kernels{make_elementwise, make_stepped};
  return kernels;
}

}  // namespace xtape
