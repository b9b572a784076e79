#include "xtape/player.hpp"

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "calls.hpp"
#include "hasher.hpp"
#include "passes/passes.hpp"
#include "plan/budget.hpp"
#include "plan/memory.hpp"
#include "plan/overlap.hpp"
#include "plan/plan.hpp"
#include "plan/shortage.hpp"
#include "plan/within_limit.hpp"
#include "ready.hpp"
#include "thread_count.hpp"
#include "traced_plan.hpp"
#include "visit.hpp"

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
/// Limits BLAS calls of this thread to one thread, since xtape splits products itself. Restores the caller's setting on
/// destruction.
class SingleThreadedBlas {
 public:
  SingleThreadedBlas() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  SingleThreadedBlas(const SingleThreadedBlas&) = delete;
  SingleThreadedBlas& operator=(const SingleThreadedBlas&) = delete;
  ~SingleThreadedBlas() { omp_set_num_threads(before_); }

 private:
  int before_;
};
}  // namespace

struct Player::Data {
  Tape tape;                       // the caller's
  const OpTable* rules = nullptr;  // the op table of the tape when it was planned
  Vars outputs;
  PlayerOptions options;
  int threads = 1;
  std::shared_ptr<Arena> arena;
  PlannedProgram planned;
  std::vector<ReadyStep> steps;
  std::vector<void*> addresses;    // of the operands of all steps
  TracedPlan traced;
  std::vector<char> fed;         // per planned input
  std::vector<double> seconds;   // per step, if options.profile is set
  std::int64_t measured = 0;     // the number of plays that `seconds` sums up
  std::optional<Hasher> hasher;  // if options.digests is set
  std::optional<Plan> plan;      // made at the first call of plan()
  bool played = false;
  std::uint64_t next_step = 0;   // the random step of a play that is given none

  void* address(const BufferRef& ref) {
    Buffer& buffer = planned.buffers[ref.buffer];
    std::byte* base =
        buffer.kind == BufferKind::arena ? arena->base() + buffer.offset : static_cast<std::byte*>(buffer.array.data());
    return base + ref.byte_offset;
  }

  ReadyStep ready_step(PlannedStep& step) {
    ReadyStep ready;
    ready.kernel = std::move(step.kernel);
    ready.in = addresses.data() + step.first;
    ready.out = addresses.data() + step.first + step.inputs;
    if (step.scratch >= 0) ready.scratch = address({step.scratch});
    if (ready.kernel->prepare) ready.packed = packed_by(*ready.kernel, step);
    return ready;
  }

  /// What the kernel prepares from parameters: shared with other kernels that read the same parameters in this form.
  std::shared_ptr<PackedWeight> packed_by(const Kernel& kernel, const PlannedStep& step) {
    std::string form = kernel.prepared_form;
    for (const BufferRef& ref : planned.in(step))
      if (planned.buffers[ref.buffer].kind == BufferKind::parameter)
        form += " of " + std::to_string(reinterpret_cast<std::uintptr_t>(address(ref)));
    return options.packed->of(form, kernel.prepared_bytes);
  }

  void ready_steps() {
    try {
      arena = options.arena ? options.arena : std::make_shared<Arena>(planned.arena_bytes);
      arena->grow(planned.arena_bytes);
    } catch (const Error& error) {
      out_of_memory(planned, error.what());
    }
    addresses.reserve(planned.operands.size());
    for (const BufferRef& ref : planned.operands) addresses.push_back(address(ref));
    steps.reserve(planned.steps.size());
    for (PlannedStep& step : planned.steps) steps.push_back(ready_step(step));
    fed.assign(planned.inputs.size(), 0);
    if (options.profile) seconds.assign(steps.size(), 0);
    if (options.digests) hasher.emplace(planned, threads);
    traced = TracedPlan(options.trace, planned);
  }

  void run_one(std::size_t index, std::uint64_t step) const {
    try {
      steps[index].run(step);
    } catch (Error& error) {
      name_call(error, planned.site_of(planned.steps[index]));
      throw;
    }
  }

  void run_traced(std::size_t index, std::uint64_t step) const {
    if (!traced.on()) return run_one(index, step);
    const TracedPlan::Step noted(traced, index);
    run_one(index, step);
  }

  void run_steps(std::uint64_t step, const std::function<void(std::int64_t)>& after) {
    if (hasher) hasher->hash_sources(planned);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const auto start = options.profile ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point();
      run_traced(i, step);
      if (options.profile)
        seconds[i] += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (hasher) hasher->hash_outputs(i, steps[i]);
      if (after) after(static_cast<std::int64_t>(i));
    }
    if (options.profile) ++measured;
  }

  void play(const Feed* feeds, std::size_t count, std::uint64_t step,
            const std::function<void(std::int64_t)>& after) {
    feed_all(feeds, count);
    const SingleThreadedBlas guard;
    run_steps(step, after);
    played = true;
    next_step = step + 1;
  }

  /// Whether the output is a dense array that fills a buffer of its own.
  bool is_alone(const PlannedOutput& output) const {
    const Buffer& buffer = planned.buffers[output.buffer];
    const auto here = [&](const PlannedOutput& other) { return other.buffer == output.buffer; };
    return buffer.kind == BufferKind::output && output.layout.offset == 0 &&
           buffer.bytes == static_cast<std::size_t>(count_of(output.layout.shape)) * size_of(output.dtype) &&
           std::count_if(planned.outputs.begin(), planned.outputs.end(), here) == 1;
  }

  /// Updates the addresses of the outputs.
  void find_outputs() {
    for (std::size_t i = 0; i < addresses.size(); ++i)
      if (const BufferRef& ref = planned.operands[i];
          planned.buffers[ref.buffer].kind == BufferKind::output)
        addresses[i] = address(ref);
  }

  /// The description of the plan.
  Plan described() const {
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
    plan.fusions = notes_on_rules(tape, *rules, Vars(outputs.begin(), outputs.end() - options.carries.size()), options);
    return plan;
  }

  void feed(const Feed& feed, const Feed* earlier) {
    const Node& node = feed.var.node();
    if (feed.var.tape() != tape) throw HandleError("play: a feed's var belongs to another tape");
    if (node.op != &input_op()) throw Error("play: only inputs can be fed, not the output of " + node.op->name);
    const auto found = std::find_if(planned.inputs.begin(), planned.inputs.end(),
                                    [&](const PlannedInput& input) { return input.name == node.name; });
    const ValueType& type = node.outputs[0];
    const ValueType given{feed.values.dtype(), feed.values.shape()};
    const auto mismatch = [&] {
      const bool flat = given.shape.size() == 1 && given.shape != type.shape && given.shape[0] == count_of(type.shape);
      return "play: input '" + node.name + "' is " + to_string(type) + ", fed with " + to_string(given) +
             (flat ? ": give the shape too, ArrayView(values, shape)" : "");
    };
    if (given.dtype != type.dtype) throw DtypeError(mismatch());
    if (given.shape != type.shape) throw ShapeError(mismatch());
    for (const Carry& carry : options.carries)
      if (carry.input.id() == feed.var.id())
        throw Error("play: input '" + node.name +
                    "' is carried from play to play and cannot be fed: write to carried()");
    const auto same = [&](const Feed& other) { return other.var.id() == feed.var.id(); };
    const auto twice = [&] { return "play: input '" + node.name + "' is fed twice"; };
    if (found == planned.inputs.end()) {  // no step needs it
      if (std::any_of(earlier, &feed, same)) throw Error(twice());
      return;
    }
    const auto index = static_cast<std::size_t>(found - planned.inputs.begin());
    if (fed[index]) throw Error(twice());
    feed.values.copy_to(planned.buffers[found->buffer].array.data());
    fed[index] = 1;
  }

  void feed_all(const Feed* feeds, std::size_t count) {
    std::fill(fed.begin(), fed.end(), char{0});
    for (std::size_t i = 0; i < count; ++i) feed(feeds[i], feeds);
    for (std::size_t i = 0; i < fed.size(); ++i)
      if (!fed[i])
        throw Error("play: input '" + planned.inputs[i].name + "' (" + to_string(planned.inputs[i].type) +
                    ") is not fed");
  }

  const PlannedOutput& output(const Var& var) const {
    const ValueId id = var.id();
    if (var.tape() != tape) throw HandleError("the var belongs to another tape than the player");
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i].id() == id) return planned.outputs[i];
    throw Error("this var (#" + std::to_string(id.node) + " " + var.node().op->name +
                ") is not an output of the player: add it to the outputs");
  }
};

Player::Player(const Tape& tape, const Vars& outputs, const PlayerOptions& options)
    : data_(std::make_unique<Data>()) {
  data_->tape = tape;
  data_->rules = &ops_of(tape);
  data_->outputs = outputs;
  for (const Carry& carry : options.carries) data_->outputs.push_back(carry.output);
  data_->options = options;
  data_->threads = thread_count(options.threads);
  const SingleThreadedBlas guard;  // folding constants plays too
  data_->planned = plan_within_limit(tape, outputs, options, data_->threads);
  check_overlaps(data_->planned, memory_of(data_->planned.buffers));
  data_->ready_steps();
}

std::vector<MemoryPoint> memory_curve(const Tape& tape, const Vars& outputs, const PlayerOptions& options) {
  PlayerOptions unbounded = options;
  unbounded.memory = 0;
  const int threads = thread_count(options.threads);  // before the guard
  const SingleThreadedBlas guard;
  return memory_curve(tape, outputs, unbounded, threads);
}

Player::Player(Player&&) noexcept = default;
Player& Player::operator=(Player&&) noexcept = default;
Player::~Player() = default;

Feed::Feed(const Var& input, std::initializer_list<Literal> elements, const Shape& shape, const Caller& caller)
    : var(input), values(at_place(caller, [&] { return array_of(elements, input.dtype(), shape); })) {}

void Player::play(const Feed* feeds, std::size_t count, std::uint64_t random_step, Caller caller) {
  at_place(caller, [&] {
    if (feeds == nullptr && count > 0) throw Error("play: the feeds are null");
    data_->play(feeds, count, random_step, {});
  });
}

void Player::play(const std::vector<Feed>& feeds, std::uint64_t random_step,
                  const std::function<void(std::int64_t)>& after, Caller caller) {
  at_place(caller, [&] { data_->play(feeds.data(), feeds.size(), random_step, after); });
}

std::uint64_t Player::step() const {
  return data_->next_step;
}
void Player::set_step(std::uint64_t random_step) {
  data_->next_step = random_step;
}

std::vector<std::int64_t> Player::final_steps(const Vars& outputs) const {
  const PlannedProgram& planned = data_->planned;
  std::vector<std::int64_t> last(planned.buffers.size(), 0);
  for (std::size_t i = 0; i < planned.steps.size(); ++i)
    for (const BufferRef& ref : planned.out(planned.steps[i]))
      last[ref.buffer] = static_cast<std::int64_t>(i);
  std::vector<std::int64_t> steps;
  for (const Var& output : outputs) steps.push_back(last[data_->output(output).buffer]);
  return steps;
}

std::vector<bool> Player::move_outputs(const Vars& outputs, const std::vector<Array>& memory) {
  if (outputs.size() != memory.size())
    throw Error("move_outputs: got " + std::to_string(memory.size()) + " arrays for " + std::to_string(outputs.size()) +
                " outputs");
  std::vector<const PlannedOutput*> planned;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const PlannedOutput& output = data_->output(outputs[i]);
    const auto mismatch = [&] {
      return "move_outputs: the output is " + to_string(outputs[i].type()) + ", the array " +
             to_string(ValueType{memory[i].dtype(), memory[i].shape()});
    };
    if (memory[i].dtype() != output.dtype) throw DtypeError(mismatch());
    if (memory[i].shape() != output.layout.shape) throw ShapeError(mismatch());
    planned.push_back(&output);
  }
  std::vector<Buffer>& buffers = data_->planned.buffers;
  std::vector<const Array*> held = memory_of(buffers);
  std::vector<bool> moved;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!memory[i]) throw Error("move_outputs: array " + std::to_string(i) + " is empty");
    moved.push_back(data_->is_alone(*planned[i]));
    if (!moved[i]) continue;
    const Array*& place = held[planned[i]->buffer];
    if (place != &buffers[planned[i]->buffer].array)
      throw Error("move_outputs: output " + std::to_string(i) + " is given twice");
    place = &memory[i];
  }
  check_overlaps(data_->planned, held);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (moved[i]) buffers[planned[i]->buffer].array = memory[i];
  data_->find_outputs();
  return moved;
}

ArrayView Player::view(const Var& output, Caller caller) const {
  const PlannedOutput& planned = at_place(caller, [&]() -> const PlannedOutput& {
    const PlannedOutput& found = data_->output(output);
    if (!data_->played) throw Error("the player has not played yet");
    return found;
  });
  return ArrayView(data_->planned.buffers[planned.buffer].array.data(), planned.dtype,
                   planned.layout);
}

double Player::scalar(const Var& output, Caller caller) const {
  const ArrayView found = view(output, caller);
  at_place(caller, [&] {
    if (count_of(found.shape()) != 1)
      throw ShapeError("scalar: the output has shape " + to_string(found.shape()) + ", not one element");
  });
  return visit_elements(found, [](const auto* element) { return static_cast<double>(*element); });
}

Array Player::carried(const Var& input) {
  const ValueId id = input.id();
  if (input.tape() != data_->tape) throw HandleError("carried: the var belongs to another tape than the player");
  for (std::size_t i = 0; i < data_->options.carries.size(); ++i)
    if (data_->options.carries[i].input.id() == id && data_->planned.carried[i] >= 0)
      return data_->planned.buffers[data_->planned.carried[i]].array;
  throw Error("carried: '" + input.node().name + "' is not the input of a carry that anything reads");
}

const Plan& Player::plan() const {
  if (!data_->plan) data_->plan = data_->described();
  return *data_->plan;
}
const std::vector<double>& Player::seconds() const {
  return data_->seconds;
}
std::int64_t Player::measured() const {
  return data_->measured;
}
void Player::forget_seconds() {
  std::fill(data_->seconds.begin(), data_->seconds.end(), 0);
  data_->measured = 0;
}
int Player::threads() const {
  return data_->threads;
}
std::vector<Digest> Player::digests() const {
  if (!data_->hasher) throw Error("digests: the player was made without PlayerOptions::digests");
  if (!data_->played) throw Error("the player has not played yet");
  return data_->hasher->digests(data_->planned);
}

const Tape& Player::tape() const {
  return data_->tape;
}
const Vars& Player::outputs() const {
  return data_->outputs;
}
const PlayerOptions& Player::options() const {
  return data_->options;
}

Array evaluate(const Var& var, const std::vector<Feed>& feeds) {
  PlayerOptions options;
  options.passes = Passes::reference();
  options.passes.unroll = false;
  Player player(var.tape(), {var}, options);
  player.play(feeds);
  return Array(player.view(var));
}

}  // namespace xtape
