/// From a program to steps over buffers.
#pragma once

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
  int first = -1;          ///< First step that writes it.
  int last = -1;           ///< Last step that reads it.
  std::size_t offset = 0;  ///< In the arena.
  Array array;             ///< The memory of all kinds but arena and external.
  int number = -1;         ///< Of kind outside: which of the memories there.
};

/// Memory of the caller's that a plan reads and writes in place. Its layouts' offsets are 0.
struct ExternalBuffers {
  std::vector<std::pair<std::string, Layout>> inputs;  ///< By the names of the inputs that lie there.
  std::vector<bool> fixed;                             ///< Per input: whether it stays as it is from play to play.
  std::vector<Layout> outputs;                         ///< Where the first outputs go; numbered after the inputs.
};

/// A place in a buffer.
struct BufferRef {
  int buffer = -1;
  std::int64_t byte_offset = 0;
  std::int64_t dense_elements = 0;  ///< How many, if they lie side by side in their order; else 0.
};

/// What a node's step is called: the name of its op; of fused elementwise ops, all their names, "exp+mul".
std::string step_name(const Node& node);

struct PlannedStep {
  std::string op;
  Site site;
  std::vector<ValueType> types;  ///< Of the outputs.
  Kernel kernel;
  std::vector<BufferRef> in;
  std::vector<BufferRef> out;
  BufferRef scratch;
  Cost cost;
};

/// Where an output is to be found after a play.
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
  std::vector<PlannedOutput> outputs;  ///< As the program's.
  std::vector<PlannedInput> inputs;    ///< Those that are fed.
  std::vector<int> carried;            ///< Per carry: the buffer of its input; -1 where nothing reads it.
  std::size_t arena_bytes = 0;
};

PlannedProgram plan(const Program& program, const PlayerOptions& options, int threads,
                    const ExternalBuffers& outside = {});

}  // namespace xtape
