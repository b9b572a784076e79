#include "xtape/player.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "base/arrays/visit.hpp"
#include "base/messages/wording.hpp"
#include "player/plan/budget.hpp"
#include "player/plan/memory.hpp"
#include "player/plan/overlap.hpp"
#include "player/run/executable.hpp"
#include "player/run/hasher.hpp"
#include "player/run/packed_weights.hpp"
#include "player/run/simulated_step.hpp"
#include "player/run/traced_plan.hpp"
#include "tape/calls.hpp"

namespace xtape {

namespace {
/// A step that is ready to run: a kernel with its pointers.
struct ReadyStep {
  const Kernel* kernel = nullptr;   ///< A kernel of the executable.
  const void* const* in = nullptr;  ///< The addresses of the inputs.
  void* const* out = nullptr;       ///< The addresses of the outputs.
  void* scratch = nullptr;
  /// The result of Kernel::prepare, or null if the kernel has no such function.
  std::shared_ptr<PackedWeight> packed = {};

  void run(std::uint64_t step) const {
    KernelArguments arguments{in, out, scratch, step};
    if (packed)
      arguments.prepared = packed->memory([&](void* memory) { kernel->prepare({in, out, scratch, step, memory}); });
    kernel->run(arguments);
  }
};
}  // namespace

struct Player::Data {
  explicit Data(const Executable& shared) : executable(shared) {
    try {
      allocate();
    } catch (const OutOfMemory& error) {
      out_of_memory(planned(), error.what());
    }
    check_overlaps(planned(), memory);
    ready_steps();
  }

  Executable executable;
  std::shared_ptr<Arena> arena;
  std::vector<Array> memory;  // like PlannedProgram::memory, but with memory for the empty arrays
  std::vector<ReadyStep> steps;
  std::vector<void*> addresses;  // the addresses of the operands of all steps
  TracedPlan traced;
  std::vector<char> fed;         // per planned input
  std::vector<double> seconds;   // per step, if options.profile is set
  std::int64_t measured = 0;     // the number of plays whose times `seconds` sums up
  std::optional<Hasher> hasher;  // if options.digests is set
  bool played = false;
  std::uint64_t next_step = 0;  // the random step of the next play, unless the caller gives one

  const Executable::Data& plan() const { return *executable.data_; }
  const PlannedProgram& planned() const { return plan().planned; }
  const PlayerOptions& options() const { return plan().options; }

  /// Returns the memory of a buffer outside of the arena.
  Array& held(int buffer) { return memory[planned().buffers[buffer].number]; }
  /// Returns the array that holds the state of a carry. Throws as Player::carried does.
  Array& carried(const Var& input);

  /// Creates the arena, and the arrays of inputs, outputs and carries.
  void allocate() {
    arena = options().arena ? options().arena : std::make_shared<Arena>(planned().arena_bytes);
    arena->grow(planned().arena_bytes);
    memory = planned().memory;
    for (const Buffer& buffer : planned().buffers) {
      if (!buffer.is_held() || memory[buffer.number]) continue;
      const ValueType& type = planned().program->type(buffer.of);
      if (buffer.kind != BufferKind::output)
        memory[buffer.number] = Array(type.dtype, type.shape);
      else if (buffer.first >= 0)
        memory[buffer.number] = Array(Dtype::boolean, {static_cast<std::int64_t>(buffer.bytes)});
    }
  }

  void* address(const BufferRef& ref) {
    const Buffer& buffer = planned().buffers[ref.buffer];
    std::byte* base = buffer.kind == BufferKind::arena ? arena->base() + buffer.offset
                                                       : static_cast<std::byte*>(memory[buffer.number].data());
    return base + ref.byte_offset;
  }

  ReadyStep ready_step(const PlannedStep& step) {
    ReadyStep ready;
    ready.kernel = step.kernel.get();
    ready.in = addresses.data() + step.first;
    ready.out = addresses.data() + step.first + step.inputs;
    if (step.scratch >= 0) ready.scratch = address({step.scratch});
    if (ready.kernel->prepare) ready.packed = packed_by(*ready.kernel, step);
    return ready;
  }

  /// Returns the packed weight that the kernel prepares from parameters. Kernels that read the same parameters in the
  /// same form share the result.
  std::shared_ptr<PackedWeight> packed_by(const Kernel& kernel, const PlannedStep& step) {
    std::string form = kernel.prepared_form;
    for (const BufferRef& ref : planned().in(step))
      if (planned().buffers[ref.buffer].kind == BufferKind::parameter)
        form += " of " + std::to_string(reinterpret_cast<std::uintptr_t>(address(ref)));
    return options().packed->of(form, kernel.prepared_bytes);
  }

  void ready_steps() {
    addresses.reserve(planned().operands.size());
    for (const BufferRef& ref : planned().operands) addresses.push_back(address(ref));
    steps.reserve(planned().steps.size());
    for (const PlannedStep& step : planned().steps) steps.push_back(ready_step(step));
    fed.assign(planned().inputs.size(), 0);
    if (options().profile) seconds.assign(steps.size(), 0);
    if (options().digests) hasher.emplace(planned(), plan().threads);
    traced = TracedPlan(options().trace, planned());
  }

  void run_one(std::size_t index, std::uint64_t step) const {
    try {
      steps[index].run(step);
    } catch (Error& error) {
      name_call(error, planned().site_of(planned().steps[index]));
      throw;
    }
  }

  void run_traced(std::size_t index, std::uint64_t step) const {
    if (!traced.on()) return run_one(index, step);
    const TracedPlan::Step noted(traced, index);
    run_one(index, step);
  }

  void run_steps(std::uint64_t step, const std::function<void(std::int64_t)>& after) {
    SimulatedTeam* const team = SimulatedTeam::current();
    if (team != nullptr) team->worked("(rest)");
    if (hasher) hasher->hash_sources(planned(), memory);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const auto start = options().profile ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point();
      run_traced(i, step);
      if (options().profile)
        seconds[i] += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (team != nullptr) note_step(*team, executable.plan(), planned(), i, addresses);
      if (hasher) hasher->hash_outputs(i, steps[i].out);
      if (after) after(static_cast<std::int64_t>(i));
    }
    if (options().profile) ++measured;
  }

  void play(const Feed* feeds, std::size_t count, std::uint64_t step, const std::function<void(std::int64_t)>& after) {
    feed_all(feeds, count);
    run_steps(step, after);
    played = true;
    next_step = step + 1;
  }

  /// Returns whether the output is a dense array that fills its own buffer.
  bool is_alone(const PlannedOutput& output) const {
    const Buffer& buffer = planned().buffers[output.buffer];
    const auto here = [&](const PlannedOutput& other) { return other.buffer == output.buffer; };
    return buffer.kind == BufferKind::output && output.layout.offset == 0 &&
           buffer.bytes == static_cast<std::size_t>(bytes_of(output.dtype, count_of(output.layout.shape))) &&
           std::count_if(planned().outputs.begin(), planned().outputs.end(), here) == 1;
  }

  /// Updates the addresses of the outputs.
  void find_outputs() {
    for (std::size_t i = 0; i < addresses.size(); ++i)
      if (const BufferRef& ref = planned().operands[i]; planned().buffers[ref.buffer].kind == BufferKind::output)
        addresses[i] = address(ref);
  }

  void feed(const Feed& feed, const Feed* earlier) {
    const Node& node = feed.var.node();
    if (feed.var.tape() != plan().tape) throw HandleError("play: a feed's var belongs to another tape");
    if (node.op != &input_op()) throw Error("play: only inputs can be fed, not the output of " + node.op->name);
    const auto found = std::find_if(planned().inputs.begin(), planned().inputs.end(),
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
    for (const Carry& carry : plan().options.carries)
      if (carry.input.id() == feed.var.id())
        throw Error("play: input '" + node.name +
                    "' is carried from play to play and cannot be fed: write to carried()");
    const auto same = [&](const Feed& other) { return other.var.id() == feed.var.id(); };
    const auto twice = [&] { return "play: input '" + node.name + "' is fed twice"; };
    if (found == planned().inputs.end()) {  // no step reads this input
      if (std::any_of(earlier, &feed, same)) throw Error(twice());
      return;
    }
    const auto index = static_cast<std::size_t>(found - planned().inputs.begin());
    if (fed[index]) throw Error(twice());
    feed.values.copy_to(held(found->buffer).data());
    fed[index] = 1;
  }

  void feed_all(const Feed* feeds, std::size_t count) {
    std::ranges::fill(fed, char{0});
    for (std::size_t i = 0; i < count; ++i) feed(feeds[i], feeds);
    for (std::size_t i = 0; i < fed.size(); ++i)
      if (!fed[i])
        throw Error("play: input '" + planned().inputs[i].name + "' (" + to_string(planned().inputs[i].type) +
                    ") is not fed");
  }
};

Player::Player(const Executable& executable) : data_(std::make_unique<Data>(executable)) {}
Player::Player(const Tape& tape, const Vars& outputs, const PlayerOptions& options)
    : Player(compile(tape, outputs, options)) {}
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
  const PlannedProgram& planned = data_->planned();
  std::vector<std::int64_t> last(planned.buffers.size(), 0);
  for (std::size_t i = 0; i < planned.steps.size(); ++i)
    for (const BufferRef& ref : planned.out(planned.steps[i])) last[ref.buffer] = static_cast<std::int64_t>(i);
  std::vector<std::int64_t> steps;
  for (const Var& output : outputs) steps.push_back(last[data_->plan().output(output).buffer]);
  return steps;
}

std::vector<bool> Player::move_outputs(const Vars& outputs, const std::vector<Array>& memory) {
  if (outputs.size() != memory.size())
    throw Error("move_outputs: got " + std::to_string(memory.size()) + " arrays for " + std::to_string(outputs.size()) +
                " outputs");
  std::vector<const PlannedOutput*> planned;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const PlannedOutput& output = data_->plan().output(outputs[i]);
    const auto mismatch = [&] {
      return "move_outputs: the output is " + to_string(outputs[i].type()) + ", the array " +
             to_string(ValueType{memory[i].dtype(), memory[i].shape()});
    };
    if (memory[i].dtype() != output.dtype) throw DtypeError(mismatch());
    if (memory[i].shape() != output.layout.shape) throw ShapeError(mismatch());
    planned.push_back(&output);
  }
  std::vector<Array> after = data_->memory;
  std::vector<bool> moved;
  std::vector<int> places;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!memory[i]) throw Error("move_outputs: array " + std::to_string(i) + " is empty");
    moved.push_back(data_->is_alone(*planned[i]));
    if (!moved[i]) continue;
    const int place = data_->planned().buffers[planned[i]->buffer].number;
    if (contains(places, place)) throw Error("move_outputs: output " + std::to_string(i) + " is given twice");
    places.push_back(place);
    after[place] = memory[i];
  }
  check_overlaps(data_->planned(), after);
  data_->memory = std::move(after);
  data_->find_outputs();
  return moved;
}

ArrayView Player::view(const Var& output, Caller caller) const {
  const PlannedOutput& planned = at_place(caller, [&]() -> const PlannedOutput& {
    const PlannedOutput& found = data_->plan().output(output);
    if (!data_->played) throw Error("the player has not played yet");
    return found;
  });
  return ArrayView(data_->held(planned.buffer).data(), planned.dtype, planned.layout);
}

double Player::scalar(const Var& output, Caller caller) const {
  const ArrayView found = view(output, caller);
  at_place(caller, [&] {
    if (count_of(found.shape()) != 1)
      throw ShapeError("scalar: the output has shape " + to_string(found.shape()) + ", not one element");
  });
  return visit_elements(found, [](const auto* element) { return static_cast<double>(*element); });
}

Array& Player::Data::carried(const Var& input) {
  const ValueId id = input.id();
  const std::vector<int>& carried = planned().carried;
  if (input.tape() != executable.tape()) throw HandleError("carried: the var belongs to another tape than the player");
  for (std::size_t i = 0; i < carried.size(); ++i)
    if (executable.options().carries[i].input.id() == id && carried[i] >= 0) return held(carried[i]);
  throw Error("carried: '" + input.node().name + "' is not the input of a carry that anything reads");
}

Array Player::carried(const Var& input) {
  return data_->carried(input);
}
ArrayView Player::carried(const Var& input) const {
  return data_->carried(input);
}

const Executable& Player::executable() const {
  return data_->executable;
}
const Plan& Player::plan() const {
  return executable().plan();
}
const std::vector<double>& Player::seconds() const {
  return data_->seconds;
}
std::int64_t Player::measured() const {
  return data_->measured;
}
void Player::forget_seconds() {
  std::ranges::fill(data_->seconds, 0);
  data_->measured = 0;
}
int Player::threads() const {
  return executable().threads();
}
std::vector<Digest> Player::digests() const {
  if (!data_->hasher) throw Error("digests: the player was made without PlayerOptions::digests");
  if (!data_->played) throw Error("the player has not played yet");
  return data_->hasher->digests(data_->planned());
}

const Tape& Player::tape() const {
  return executable().tape();
}
const Vars& Player::outputs() const {
  return executable().outputs();
}
const PlayerOptions& Player::options() const {
  return executable().options();
}

Array evaluate(const Var& var, const std::vector<Feed>& feeds, Caller caller) {
  return at_place(caller, [&] {
    PlayerOptions options;
    options.passes = Passes::reference();
    options.passes.unroll = false;
    Player player(var.tape(), {var}, options);
    player.play(feeds);
    return Array(player.view(var));
  });
}

}  // namespace xtape
