/// Kernels that are a list of loops over few elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "xtape/op/kernel.hpp"

namespace xtape {

/// A Kernel::run that consists of loops, one after the other. A kernel over few elements takes longer to find its
/// pointers than to compute, so a scan looks for this type (`loops_of`) and calls the loops itself, with pointers that
/// it keeps from step to step.
struct LoopKernel {
  struct Operand {
    std::int32_t number = -1;  ///< Among the kernel's inputs, which its outputs follow; -1: in scratch.
    std::size_t offset = 0;    ///< In scratch, in bytes.
  };
  struct Loop {
    TileFunction run;               ///< Is given all its elements at once, and never throws.
    std::vector<Operand> operands;  ///< Inputs, then outputs; at most `most_operands`.
    std::size_t inputs = 0;
    std::int64_t count = 0;  ///< The number of elements.
  };
  static constexpr std::size_t most_operands = 16;

  std::int32_t inputs = 0;  ///< The number of inputs of the kernel.
  std::vector<Loop> loops = {};

  void operator()(const KernelArguments& arguments) const;
};

/// The loops of a kernel; null if it does not consist of loops.
const LoopKernel* loops_of(const Kernel& kernel);

/// Copies `Tile::count` adjacent elements of this size in bytes.
TileFunction copy_loop(std::size_t bytes);
/// Writes an element `Tile::count` times.
TileFunction fill_loop(std::size_t bytes);
/// Writes the elements at these offsets, in elements.
TileFunction gather_loop(std::size_t bytes, std::vector<std::int64_t> offsets);
/// A kernel of one loop that reads one input and writes one output.
Kernel one_loop(TileFunction run, std::int64_t count);

}  // namespace xtape
