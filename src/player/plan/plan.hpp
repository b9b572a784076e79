/// Plans a program: converts it to steps over buffers.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "player/plan/kernel_table.hpp"
#include "player/program/program.hpp"

namespace xtape {

enum class BufferKind : std::uint8_t { arena, output, constant, parameter, input, carry, external };
const char* name_of(BufferKind kind);

struct Buffer {
  /// What the buffer holds: the value `of`, a copy of this value, an output, or the scratch memory of the step that
  /// computes `of`.
  enum class Role : std::uint8_t { value, copy, output, scratch };

  ValueId of;  ///< The value of the program that names the buffer. Empty for the caller's memory.
  Role role = Role::value;
  BufferKind kind = BufferKind::arena;
  std::size_t bytes = 0;
  int first = -1;          ///< The first step that reads or writes the buffer, or -1 if there is none.
  int last = -1;           ///< The last step that reads or writes the buffer.
  std::size_t offset = 0;  ///< The offset in the arena, in bytes.
  /// For a buffer outside of the arena: its index in PlannedProgram::memory. For kind external: its index in the
  /// caller's memory.
  int number = -1;
  /// Returns whether PlannedProgram::memory has an entry for the buffer.
  bool is_held() const { return number >= 0 && kind != BufferKind::external; }
  /// Returns whether the buffer takes memory. Parameters and carries always do. Other buffers do if a step uses them.
  bool counts() const { return first >= 0 || kind == BufferKind::parameter || kind == BufferKind::carry; }
};

/// The caller's memory that a plan reads and writes in place. The layouts have offset 0.
struct ExternalBuffers {
  std::vector<std::pair<std::string, Layout>> inputs;  ///< The inputs in the caller's memory, with their names.
  std::vector<bool> fixed;                             ///< Per input: whether it keeps its values between plays.
  /// The layouts of the first outputs. The numbers of these outputs (make_external) follow the numbers of the inputs.
  std::vector<Layout> outputs;
  /// How often the plan runs for each run of its caller, if the caller divides steps by rows (RowRun). Otherwise 0.
  std::int64_t times = 0;
};

/// A location in a buffer.
struct BufferRef {
  int buffer = -1;
  std::int64_t byte_offset = 0;
  std::int64_t dense_elements = 0;  ///< The number of elements if they are contiguous, else 0.
};

/// Returns the name of a node's step: the name of its op, or the names of all ops of fused elementwise ops, such as
/// "exp+mul".
std::string step_name(const Node& node);

/// A kernel or a copy. Its operands are slices of PlannedProgram::operands.
struct PlannedStep {
  std::int32_t node = -1;                ///< The node of the program that the step computes, or that needs the copy.
  ValueId copied;                        ///< The value that a copy step copies. Empty for other steps.
  std::shared_ptr<const Kernel> kernel;  ///< Equal calls share a kernel.
  std::size_t first = 0;                 ///< The index of the first operand. Outputs follow the inputs.
  std::uint32_t inputs = 0, outputs = 0;
  int scratch = -1;  ///< The buffer of the scratch memory, or -1 if the step needs none.
  /// In a scan: whether the result is the same at each step of the scan. The planned step then runs only once, before
  /// the first step of the scan.
  bool once = false;
  bool again = false;  ///< True for a further run of a step whose results were not kept (budget.hpp).
  Cost cost;

  bool is_copy() const { return copied.node >= 0; }
};

/// Consecutive steps of which a thread computes some rows, while other threads compute other rows (row_runs.hpp).
struct RowRun {
  std::size_t first = 0, last = 0;  ///< The first and the last step.
  std::size_t steps = 0;            ///< The number of steps, without those with PlannedStep::once.
  std::int64_t rows = 0;
  std::int64_t grain = 1;  ///< The least number of rows that a thread computes.
};

/// Where an output is stored after a play.
struct PlannedOutput {
  int buffer = -1;
  Layout layout;
  Dtype dtype = Dtype::float32;
};

struct PlannedInput {
  std::string name;
  int buffer = -1;
  ValueType type;
};

struct PlannedProgram {
  PlannedProgram() = default;
  explicit PlannedProgram(Program planned) : program(std::make_shared<const Program>(std::move(planned))) {}

  std::shared_ptr<const Program> program;
  bool in_place = true;  ///< The value of Passes::in_place.
  std::vector<Buffer> buffers;
  /// The contents of buffers outside of the arena: constants, parameters, and carries that have memory. Empty arrays
  /// stand for memory that each player allocates for itself.
  std::vector<Array> memory;
  std::vector<PlannedStep> steps;
  std::vector<BufferRef> operands;  ///< The operands of all steps.
  std::vector<RowRun> row_runs;     ///< In the order of the steps.
  /// The layouts of the results of kernels, for PlayerOptions::digests. They have offset 0.
  ValueTable<Layout> layouts;
  std::vector<PlannedOutput> outputs;  ///< In the order of the program's outputs.
  std::vector<PlannedInput> inputs;    ///< The inputs that must be fed.
  std::vector<int> carried;            ///< Per carry: the buffer of its input, or -1 if no step reads the input.
  std::size_t arena_bytes = 0;

  std::span<const BufferRef> in(const PlannedStep& step) const { return {operands.data() + step.first, step.inputs}; }
  std::span<const BufferRef> out(const PlannedStep& step) const {
    return {operands.data() + step.first + step.inputs, step.outputs};
  }
  /// Returns the operands of the step: first the inputs, then the outputs.
  std::span<BufferRef> of(const PlannedStep& step) {
    return {operands.data() + step.first, std::size_t{step.inputs} + step.outputs};
  }

  /// Returns the run of a step, or null if there is none.
  const RowRun* run_of(std::size_t step) const {
    const auto run = std::ranges::find_if(row_runs, [&](const RowRun& each) { return step <= each.last; });
    return run != row_runs.end() && run->first <= step ? &*run : nullptr;
  }

  // Texts for people. The plan does not store them.

  std::string name_of(const Buffer& buffer) const;
  std::string name_of(const PlannedStep& step) const;  ///< step_name() of the step, or "copy".
  const Site& site_of(const PlannedStep& step) const { return program->node(step.node).site; }
  /// Returns the types of the step's outputs.
  std::span<const ValueType> types_of(const PlannedStep& step) const {
    if (step.is_copy()) return {&program->tape.type(step.copied), 1};
    return program->node(step.node).outputs.get();
  }
  std::string types_text(const PlannedStep& step) const;  ///< "float32 (2, 3), int64 ()".
};

/// The kernels of nodes that have a body. The run of a player provides them, because they run plans themselves.
struct BodyKernels {
  /// The kernel of an op for which runs_in_tiles() is true.
  Kernel (*tiled)(const KernelCall& call);
  /// The kernel of an op whose body is played step by step. The body is planned once, with the passes and the seed of
  /// `options`. `zeros` is the result of needed_zeros. The function sets `cost` to the cost of all steps.
  Kernel (*stepped)(const KernelCall& call, const PlayerOptions& options, const std::vector<bool>& zeros, Cost& cost);
};

/// Plans the steps and the layout of the memory. Throws Error if the plan needs more memory than this process can use
/// or than PlayerOptions::memory allows (both budget.hpp), or if an op cannot be played.
PlannedProgram plan(Program program, const PlayerOptions& options, int threads, const BodyKernels& bodies,
                    const ExternalBuffers& outside = {});

}  // namespace xtape
