/// Kernels that consist of loops over few elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "xtape/op/kernel.hpp"

namespace xtape {

/// A Kernel::run that consists of consecutive loops. If there are few elements, finding the pointers takes longer than
/// computing. A scan therefore looks for this type (`loops_of`) and calls the loops itself, with pointers that it keeps
/// between steps.
struct LoopKernel {
  struct Operand {
    std::int32_t number = -1;  ///< The index in the list of the kernel's inputs, then outputs. -1: in scratch.
    std::size_t offset = 0;    ///< The offset in scratch, in bytes.
  };
  struct Loop {
    TileFunction run;               ///< Receives all its elements in a single call. Never throws.
    std::vector<Operand> operands;  ///< Inputs, then outputs. At most `most_operands`.
    std::size_t inputs = 0;
    std::int64_t count = 0;  ///< The number of elements.
  };
  static constexpr std::size_t most_operands = 16;

  std::int32_t inputs = 0;  ///< The number of inputs of the kernel.
  std::vector<Loop> loops = {};

  void operator()(const KernelArguments& arguments) const;
};

/// Returns the loops of a kernel, or null if it does not consist of loops.
const LoopKernel* loops_of(const Kernel& kernel);

/// Copies `Tile::count` adjacent elements of this size in bytes.
TileFunction copy_loop(std::size_t bytes);
/// Writes an element `Tile::count` times.
TileFunction fill_loop(std::size_t bytes);
/// Copies the elements at these offsets (in elements) one after the other.
TileFunction gather_loop(std::size_t bytes, std::vector<std::int64_t> offsets);
/// A kernel with one loop that reads one input and writes one output.
Kernel one_loop(TileFunction run, std::int64_t count);

}  // namespace xtape
