#include "player/plan/plan.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "player/plan/budget.hpp"
#include "player/plan/kernel_table.hpp"
#include "player/plan/memory.hpp"
#include "player/plan/placement.hpp"
#include "player/plan/row_runs.hpp"
#include "player/program/passes.hpp"

namespace xtape {

namespace {
class Planner {
 public:
  Planner(Program program, const PlayerOptions& options, int threads, const BodyKernels& bodies,
          const ExternalBuffers& external)
      : result_(std::move(program)),
        program_(*result_.program),
        options_(options),
        threads_(threads),
        bodies_(bodies),
        external_(external),
        places_(program_, options.passes, external) {
    result_.in_place = options.passes.in_place;
    result_.steps.reserve(program_.tape.size());
    if (options.digests) result_.layouts = ValueTable<Layout>(program_.tape, {});
  }

  PlannedProgram run() {
    for (std::size_t i = 0; i < program_.tape.size(); ++i) plan_node(static_cast<std::int32_t>(i));
    plan_outputs();
    plan_carries();
    return finish();
  }

 private:
  void plan_node(std::int32_t index) {
    const Node& node = program_.node(index);
    if (node.op->is_source())
      plan_source(index, node);
    else if (node.op->is_view() && node.op->lowering.view)
      plan_view(index, node);
    else if (node.op->lowering.layouts.parts && options_.passes.views)
      plan_parts(index, node);
    else
      plan_kernel(index, node);
  }

  void plan_source(std::int32_t index, const Node& node) {
    const ValueType& type = node.outputs[0];
    const std::size_t bytes = bytes_of(type);
    const auto is_carry = [&](const auto& carry) { return carry.first == ValueId{index, 0}; };
    const auto carry = std::find_if(program_.carries.begin(), program_.carries.end(), is_carry);
    const BufferKind kind = carry != program_.carries.end() ? BufferKind::carry
                            : node.op == &parameter_op()    ? BufferKind::parameter
                            : node.op == &constant_op()     ? BufferKind::constant
                                                            : BufferKind::input;
    const auto is_outside = [&](const auto& input) { return input.first == node.name; };
    const auto found = std::find_if(external_.inputs.begin(), external_.inputs.end(), is_outside);
    if (kind == BufferKind::input && found != external_.inputs.end()) {
      const auto number = static_cast<int>(found - external_.inputs.begin());
      places_.set({index, 0}, {places_.make_external(number), found->second});
      return;
    }
    const int buffer = places_.make_buffer({index, 0}, Buffer::Role::value, kind, bytes);
    const bool held = kind == BufferKind::parameter || kind == BufferKind::constant;
    Array given;
    if (held) given = node.storage;
    if (kind == BufferKind::carry) given = options_.carries[carry - program_.carries.begin()].memory;
    if (!given) require_memory(node, type, memory_limit_);
    places_.memory.back() = std::move(given);
    if (kind == BufferKind::input) result_.inputs.push_back({node.name, buffer, type});
    places_.set({index, 0}, {buffer, Layout::dense(type.shape)});
  }

  /// Adds a step that copies the elements of a value for node `index`.
  void add_copy(std::int32_t index, ValueId value, const Placement& from, const Placement& to) {
    const ValueType& type = program_.type(value);
    require_memory(program_.node(index), type, memory_limit_);
    PlannedStep step;
    step.node = index;
    step.copied = value;
    Layout in = from.layout;
    Layout out = to.layout;
    in.offset = out.offset = 0;
    step.cost = cost_of_copy(type, in);
    step.kernel = std::make_shared<const Kernel>(copy_kernel(type, in, out, threads_));
    add_step(std::move(step), {ref(type.dtype, from)}, {ref(type.dtype, to)});
  }

  void add_step(PlannedStep step, const std::vector<BufferRef>& in, const std::vector<BufferRef>& out) {
    step.first = result_.operands.size();
    step.inputs = static_cast<std::uint32_t>(in.size());
    step.outputs = static_cast<std::uint32_t>(out.size());
    result_.operands.insert(result_.operands.end(), in.begin(), in.end());
    result_.operands.insert(result_.operands.end(), out.begin(), out.end());
    result_.steps.push_back(std::move(step));
  }

  static BufferRef ref(Dtype dtype, const Placement& placement) {
    const Layout& layout = placement.layout;
    return {placement.buffer, bytes_of(dtype, layout.offset), layout.contiguous() ? count_of(layout.shape) : 0};
  }

  /// Returns the placement of the value as a dense array: its own placement, or a copy. Each value is copied once. If
  /// the value stays the same between plays, the copy is made before the first play and has its own memory.
  const Placement& contiguous(ValueId id, std::int32_t index) {
    const Placement& place = places_.of(id);
    if (place.layout.contiguous()) return place;
    const auto [made, is_new] = dense_copies_.try_emplace(id);
    if (is_new) {
      const bool once = is_fixed_outside(place);
      made->second = places_.make_copy_of(id, once ? BufferKind::output : BufferKind::arena);
      add_copy(index, id, place, made->second);
      result_.steps.back().once = once;
    }
    return made->second;
  }

  void plan_view(std::int32_t index, const Node& node) {
    const OpCall call = call_of(program_, node);
    const ValueId output{index, 0};
    const Placement& input = places_.of(node.inputs[0]);
    if (!options_.passes.views) {
      const Placement dense = contiguous(node.inputs[0], index);
      add_copy(index, output, {dense.buffer, *node.op->lowering.view.output(call, dense.layout)}, places_.make(output));
      return;
    }
    const std::optional<Layout> seen = node.op->lowering.view.output(call, input.layout);
    if (seen) {
      const Placement alias{input.buffer, *seen};
      if (!places_.of(output)) {
        places_.set(output, alias);
      } else if (!same_elements(places_.of(output), alias)) {
        add_copy(index, output, alias, places_.of(output));
      }
      return;
    }
    if (!places_.of(output)) places_.make(output);
    const Placement target = places_.of(output);
    std::optional<Layout> source;
    if (node.op->lowering.view.input) source = node.op->lowering.view.input(call, target.layout);
    if (source) {  // copy the input, so that the view of the copy is the output
      add_copy(index, node.inputs[0], input, {target.buffer, *source});
      return;
    }
    const Placement dense = contiguous(node.inputs[0], index);
    add_copy(index, output, {dense.buffer, *node.op->lowering.view.output(call, dense.layout)}, target);
  }

  void plan_parts(std::int32_t index, const Node& node) {
    const ValueId output{index, 0};
    if (!places_.of(output)) places_.make(output);
    const Placement whole = places_.of(output);
    const std::vector<Layout> parts = node.op->lowering.layouts.parts(call_of(program_, node), whole.layout);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Placement target{whole.buffer, parts[i]};
      if (same_elements(places_.of(node.inputs[i]), target)) continue;
      add_copy(index, node.inputs[i], places_.of(node.inputs[i]), target);
    }
  }

  void plan_kernel(std::int32_t index, const Node& node) {
    const bool tiled = runs_in_tiles(*node.op);
    const bool steps = static_cast<bool>(node.op->lowering.body.steps);
    if (!tiled && !steps && !node.op->lowering.kernel)
      throw Error(node.op->name + ": has no kernel, tile, view or expansion, so it cannot be played");
    for (const ValueId& id : node.inputs) require_countable(node, program_.type(id));
    for (const ValueType& type : node.outputs) require_memory(node, type, memory_limit_);
    PlannedStep step;
    step.node = index;
    call_.begin(node);
    in_.clear();
    out_.clear();
    const bool any_layout = tiled || (node.op->lowering.layouts.any_in && options_.passes.views);
    for (const ValueId& id : node.inputs) {
      const Placement& place = any_layout ? places_.of(id) : contiguous(id, index);
      in_.push_back(ref(program_.type(id).dtype, place));
      call_.add_input(program_.type(id), place.layout, is_fixed(place));
    }
    if (options_.passes.in_place) places_.place_over_input(index);
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      const ValueId id{index, static_cast<std::int32_t>(k)};
      if (!places_.of(id)) places_.make(id);
      const Placement& place = places_.of(id);
      out_.push_back(ref(node.outputs[k].dtype, place));
      call_.add_output(place.layout);
      if (options_.digests) result_.layouts[id] = call_.out.back();
    }
    const SharedKernel* known = made_.find(call_);
    const SharedKernel shared = known != nullptr ? *known : make_shared_kernel(index, node);
    step.kernel = shared.kernel;
    step.cost = shared.cost;
    if (const std::size_t bytes = step.kernel->scratch_bytes; bytes > 0)
      step.scratch = places_.make_buffer({index, 0}, Buffer::Role::scratch, BufferKind::arena, bytes);
    add_step(std::move(step), in_, out_);
  }

  /// Throws Error if a lowering made a kernel that cannot run.
  static void check_kernel(const Kernel& kernel, const KernelCall& call, const std::string& op) {
    if (!kernel.run) throw Error(op + ": its lowering gives a kernel without a function");
    if (kernel.prepare && std::ranges::find(call.fixed, true) == call.fixed.end())
      throw Error(op + ": its lowering gives a kernel that prepares data, but no input is fixed (KernelCall::fixed)");
    constexpr std::size_t most = std::size_t{1} << 62;
    for (const std::size_t bytes : {kernel.scratch_bytes, kernel.prepared_bytes})
      if (bytes > most)
        throw Error(op + ": its lowering gives a kernel that needs " + std::to_string(bytes) + " bytes of memory");
  }

  /// Creates the kernel of `call_`. Equal calls share the kernel.
  SharedKernel make_shared_kernel(std::int32_t index, const Node& node) {
    KernelCall call = call_.kernel_call();
    call.threads = threads_;
    call.seed = options_.seed;
    call.precision = options_.precision;
    call.bits = options_.bits;
    Cost cost = cost_of(call);
    Kernel kernel = runs_in_tiles(*node.op)        ? bodies_.tiled(call)
                    : node.op->lowering.body.steps ? bodies_.stepped(call, options_, zeros_of(index), cost)
                                                   : make_kernel(call, node.site);
    check_kernel(kernel, call, node.op->name);
    const SharedKernel shared{std::make_shared<const Kernel>(std::move(kernel)), cost};
    made_.add(call, shared);
    return shared;
  }

  /// Returns for each output whether the kernel must write zeros for steps that do not take place. With digests, every
  /// entry is true, because hashes must not depend on the previous contents of the memory.
  std::vector<bool> zeros_of(std::int32_t index) {
    if (options_.digests) return std::vector<bool>(program_.node(index).outputs.size(), true);
    if (!users_) users_.emplace(program_);
    return needed_zeros(program_, *users_, index);
  }

  bool is_fixed(const Placement& place) const {
    const BufferKind kind = places_.buffers[places_.resolved(place.buffer)].kind;
    return (options_.packed && kind == BufferKind::parameter) || is_fixed_outside(place);
  }

  bool is_fixed_outside(const Placement& place) const {
    const Buffer& buffer = places_.buffers[places_.resolved(place.buffer)];
    const auto number = static_cast<std::size_t>(buffer.number);
    return buffer.kind == BufferKind::external && number < external_.fixed.size() && external_.fixed[number];
  }

  /// Outputs must be stored in dense buffers of kind output, or in the carry that they update. An output that is stored
  /// elsewhere is copied to a buffer of kind output.
  void plan_outputs() {
    for (std::size_t k = 0; k < program_.outputs.size(); ++k) {
      const ValueId id = program_.outputs[k];
      const ValueType& type = program_.type(id);
      Placement place = places_.of(id);
      if (k < external_.outputs.size()) {
        const Placement target = places_.external_output(k);
        if (!same_elements(place, target)) add_copy(id.node, id, place, target);
        result_.outputs.push_back({target.buffer, target.layout, type.dtype});
        continue;
      }
      const BufferKind kind = places_.buffers[places_.resolved(place.buffer)].kind;
      const bool written_by_carry = kind == BufferKind::carry && !program_.node(id.node).op->is_source() &&
                                    is_carried_by(id, places_.resolved(place.buffer));
      if (!(kind == BufferKind::output || written_by_carry) || !place.layout.contiguous()) {
        const std::size_t bytes = bytes_of(type);
        const Placement copy{places_.make_buffer(id, Buffer::Role::output, BufferKind::output, bytes),
                             Layout::dense(type.shape)};
        add_copy(id.node, id, place, copy);
        place = copy;
      }
      result_.outputs.push_back({place.buffer, place.layout, type.dtype});
    }
  }

  bool is_carried_by(ValueId output, int buffer) const {
    return std::any_of(program_.carries.begin(), program_.carries.end(), [&](const auto& carry) {
      return carry.second == output && carry.first.node >= 0 &&
             places_.resolved(places_.of(carry.first).buffer) == buffer;
    });
  }

  /// Copies the outputs of carries to the states at the end, unless an op has written the outputs there directly.
  void plan_carries() {
    const std::size_t first = program_.outputs.size() - program_.carries.size();
    for (std::size_t i = 0; i < program_.carries.size(); ++i) {
      const ValueId input = program_.carries[i].first;
      if (input.node < 0) {
        result_.carried.push_back(-1);
        continue;
      }
      const Placement state = places_.of(input);
      result_.carried.push_back(places_.resolved(state.buffer));
      const PlannedOutput& output = result_.outputs[first + i];
      if (places_.resolved(output.buffer) != places_.resolved(state.buffer))
        add_copy(input.node, input, {output.buffer, output.layout}, state);
    }
  }

  PlannedProgram finish() {
    result_.buffers = std::move(places_.buffers);
    result_.memory = std::move(places_.memory);
    for (BufferRef& ref : result_.operands) ref.buffer = places_.resolved(ref.buffer);
    for (PlannedOutput& output : result_.outputs) output.buffer = places_.resolved(output.buffer);
    if (external_.times > 0 && threads_ > 1) result_.row_runs = find_row_runs(result_, threads_, external_.times);
    find_lifetimes();
    keep_to_limit();
    require_memory(result_);
    return std::move(result_);
  }

  void find_lifetimes() {
    for (std::size_t s = 0; s < result_.steps.size(); ++s) {
      const RowRun* run = result_.run_of(s);
      hold(result_.steps[s], static_cast<int>(run != nullptr ? run->first : s),
           static_cast<int>(run != nullptr ? run->last : s));
    }
  }

  /// The buffers of the step hold contents from step `first` to step `last`.
  void hold(const PlannedStep& step, int first, int last) {
    const auto touch = [&](int number) {
      Buffer& buffer = result_.buffers[number];
      if (buffer.first < 0) buffer.first = first;
      buffer.last = last;
    };
    for (const BufferRef& ref : result_.of(step)) touch(ref.buffer);
    if (step.scratch >= 0) touch(step.scratch);
  }

  /// Lays out the memory. Keeps to the limit if there is one.
  void keep_to_limit() {
    const std::size_t shared = options_.arena ? options_.arena->usable() : 0;  // memory that its players already have
    if (options_.memory == 0) return lay_out_memory(shared);
    const std::size_t outside = bytes_outside(result_);
    const std::size_t room = options_.memory - std::min(options_.memory, outside);
    if (outside <= options_.memory && most_alive(lifetimes()) <= room) {
      lay_out_memory(std::min(shared, room));
      if (result_.arena_bytes <= room) return;
    }
    KnownWays of_this_plan;
    fit_memory(result_, options_.memory, options_.arena ? options_.arena->known_ways() : of_this_plan);
    find_lifetimes();
    lay_out_memory(room);
  }

  /// Tries several layouts to keep the arena small. Stops when the arena takes at most `enough` bytes.
  void lay_out_memory(std::size_t enough) {
    const Offsets offsets = assign_offsets(lifetimes(), options_.passes.reuse, enough);
    auto offset = offsets.of.begin();
    for (Buffer& buffer : result_.buffers)
      if (in_arena(buffer)) buffer.offset = *offset++;
    result_.arena_bytes = offsets.total;
  }

  std::vector<Lifetime> lifetimes() const {
    std::vector<Lifetime> lifetimes;
    for (const Buffer& buffer : result_.buffers)
      if (in_arena(buffer)) lifetimes.push_back({buffer.bytes, buffer.first, buffer.last});
    return lifetimes;
  }
  /// Returns whether the buffer takes memory of the arena. Every other buffer has other memory, is merged into another
  /// buffer, or is never used.
  static bool in_arena(const Buffer& buffer) { return buffer.first >= 0 && buffer.kind == BufferKind::arena; }

  PlannedProgram result_;
  const Program& program_;
  const PlayerOptions& options_;
  int threads_;
  const BodyKernels& bodies_;
  const ExternalBuffers& external_;
  Placements places_;
  const std::size_t memory_limit_ = memory_limit();
  KernelTable made_;
  std::optional<Users> users_;  // for programs with scans
  std::unordered_map<ValueId, Placement> dense_copies_;
  PlacedCall call_;                  // the call of the step being planned
  std::vector<BufferRef> in_, out_;  // the operands of the step being planned
};
}  // namespace

PlannedProgram plan(Program program, const PlayerOptions& options, int threads, const BodyKernels& bodies,
                    const ExternalBuffers& external) {
  return Planner(std::move(program), options, threads, bodies, external).run();
}

}  // namespace xtape
