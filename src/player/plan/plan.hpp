/// Plans a program: turns it into steps over buffers.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "passes/program.hpp"
#include "plan/cost.hpp"

namespace xtape {

enum class BufferKind : std::uint8_t { arena, output, constant, parameter, input, carry, external };
const char* name_of(BufferKind kind);

struct Buffer {
  enum class Role : std::uint8_t { value, copy, output, scratch };  ///< For the value, or for the step of its node.

  ValueId of;  ///< What it is named after: a value of the program. None for the caller's memory.
  Role role = Role::value;
  BufferKind kind = BufferKind::arena;
  std::size_t bytes = 0;
  int first = -1;          ///< First step that reads or writes it; -1 if none does.
  int last = -1;           ///< Last step that reads or writes it.
  std::size_t offset = 0;  ///< In the arena.
  /// Outside of the arena: the index in PlannedProgram::memory; for kind external, that of the caller's memory.
  int number = -1;
  /// Whether PlannedProgram::memory has a place for it.
  bool is_held() const { return number >= 0 && kind != BufferKind::external; }
  /// Whether it takes memory: parameters and carries always do, others if a step uses them.
  bool counts() const { return first >= 0 || kind == BufferKind::parameter || kind == BufferKind::carry; }
};

/// The caller's memory that a plan reads and writes in place. The offsets of the layouts are 0.
struct ExternalBuffers {
  std::vector<std::pair<std::string, Layout>> inputs;  ///< The inputs that are stored there, with their names.
  std::vector<bool> fixed;                             ///< Per input: whether it keeps its values from play to play.
  std::vector<Layout> outputs;                         ///< For the first outputs; numbered after the inputs.
};

/// A location in a buffer.
struct BufferRef {
  int buffer = -1;
  std::int64_t byte_offset = 0;
  std::int64_t dense_elements = 0;  ///< The number of elements if they are contiguous, else 0.
};

/// The name of a node's step: the name of its op, or for fused elementwise ops the names of all of them, "exp+mul".
std::string step_name(const Node& node);

/// A kernel or a copy, on slices of PlannedProgram::operands.
struct PlannedStep {
  std::int32_t node = -1;                ///< The node of the program that it computes, or for which it copies.
  ValueId copied;                        ///< For a copy: the value; else none.
  std::shared_ptr<const Kernel> kernel;  ///< Equal calls share one.
  std::size_t first = 0;                 ///< Index of the first operand. Inputs are followed by outputs.
  std::uint32_t inputs = 0, outputs = 0;
  int scratch = -1;                      ///< The buffer of its scratch memory; -1 if it needs none.
  bool once = false;   ///< In a scan: computes the same at each step, so it runs before the first one only.
  bool again = false;  ///< Has run before, and runs again because its results were not kept (budget.hpp).
  Cost cost;

  bool is_copy() const { return copied.node >= 0; }
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
  bool in_place = true;  ///< Passes::in_place
  std::vector<Buffer> buffers;
  /// What buffers outside of the arena hold: constants, parameters, and carries that have memory. Empty arrays stand for
  /// the memory that each player has for itself.
  std::vector<Array> memory;
  std::vector<PlannedStep> steps;
  std::vector<BufferRef> operands;     ///< The operands of all steps.
  ValueTable<Layout> layouts;          ///< The results of kernels, for PlayerOptions::digests. Their offsets are 0.
  std::vector<PlannedOutput> outputs;  ///< In the order of the program's outputs.
  std::vector<PlannedInput> inputs;    ///< The inputs that must be fed.
  std::vector<int> carried;            ///< Per carry: the buffer of its input; -1 if nothing reads it.
  std::size_t arena_bytes = 0;

  std::span<const BufferRef> in(const PlannedStep& step) const { return {operands.data() + step.first, step.inputs}; }
  std::span<const BufferRef> out(const PlannedStep& step) const {
    return {operands.data() + step.first + step.inputs, step.outputs};
  }
  /// Both.
  std::span<BufferRef> of(const PlannedStep& step) {
    return {operands.data() + step.first, std::size_t{step.inputs} + step.outputs};
  }

  // For people: nothing of it is kept.

  std::string name_of(const Buffer& buffer) const;
  std::string name_of(const PlannedStep& step) const;  ///< As step_name(); "copy".
  const Site& site_of(const PlannedStep& step) const { return program->node(step.node).site; }
  /// The types of its outputs.
  std::span<const ValueType> types_of(const PlannedStep& step) const {
    if (step.is_copy()) return {&program->tape.type(step.copied), 1};
    return program->node(step.node).outputs.get();
  }
  std::string types_text(const PlannedStep& step) const;  ///< "float32 (2, 3), int64 ()".
};

/// The steps and the layout of the memory. Throws Error if the plan needs more memory than this process can use
/// (shortage.hpp) or than PlayerOptions::memory (budget.hpp), or if an op cannot be played.
PlannedProgram plan(Program program, const PlayerOptions& options, int threads,
                    const ExternalBuffers& outside = {});

}  // namespace xtape
