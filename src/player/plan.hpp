/// Plans a program: turns it into steps over buffers.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cost.hpp"
#include "program.hpp"

namespace xtape {

enum class BufferKind : std::uint8_t { arena, output, constant, parameter, input, carry, external };
const char* name_of(BufferKind kind);

struct Buffer {
  std::string name;
  BufferKind kind = BufferKind::arena;
  std::size_t bytes = 0;
  bool scratch = false;
  int first = -1;          ///< First step that reads or writes it; -1 if none does.
  int last = -1;           ///< Last step that reads or writes it.
  std::size_t offset = 0;  ///< In the arena.
  Array array;             ///< The memory, for all kinds except arena and external.
  int number = -1;         ///< For kind external: the index of the caller's memory.
  /// Whether it takes memory: parameters and carries always do, others if a step uses them.
  bool counts() const { return first >= 0 || kind == BufferKind::parameter || kind == BufferKind::carry; }
};

/// The caller's memory that a plan reads and writes in place. The offsets of the layouts are 0.
struct ExternalBuffers {
  std::vector<std::pair<std::string, Layout>> inputs;  ///< By the names of the inputs that are stored there.
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

struct PlannedStep {
  std::string op;
  Site site;
  std::vector<ValueType> types;  ///< Of the outputs.
  // Of the outputs of kernels; empty for copies.
  std::vector<Origin> origins;
  std::vector<Layout> layouts;           ///< Their offsets are 0.
  std::shared_ptr<const Kernel> kernel;  ///< Equal calls share one.
  std::vector<BufferRef> in;
  std::vector<BufferRef> out;
  BufferRef scratch;
  std::vector<int> takes;  ///< Inputs that the first output may overwrite if both fill buffers that nothing else uses.
  Cost cost;
  std::int32_t node = -1;  ///< Of the program; -1 for copies.
  bool again = false;      ///< Has run before, and runs again because its results were not kept (budget.hpp).
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
  std::vector<Buffer> buffers;
  std::vector<PlannedStep> steps;
  std::vector<PlannedOutput> outputs;  ///< In the order of the program's outputs.
  std::vector<PlannedInput> inputs;    ///< The inputs that must be fed.
  std::vector<int> carried;            ///< Per carry: the buffer of its input; -1 if nothing reads it.
  std::size_t arena_bytes = 0;
};

/// The steps and the layout of the memory, without memory for the outputs. Throws Error if the plan needs more memory
/// than this process can use (shortage.hpp) or than PlayerOptions::memory (budget.hpp), or if an op cannot be played.
PlannedProgram draft(const Program& program, const PlayerOptions& options, int threads,
                     const ExternalBuffers& outside = {});
/// The same with memory for the outputs.
PlannedProgram plan(const Program& program, const PlayerOptions& options, int threads,
                    const ExternalBuffers& outside = {});

}  // namespace xtape
