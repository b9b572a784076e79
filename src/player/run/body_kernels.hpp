/// The kernels of nodes that have a body.
#pragma once

#include <cstdint>
#include <vector>

#include "player/plan/plan.hpp"

namespace xtape {

/// Creates the kernel of an op for which runs_in_tiles() is true.
Kernel make_elementwise(const KernelCall& call);
/// The kernels that plans need of this room.
const BodyKernels& body_kernels();

/// A loop that computes a node of a body, or two nodes of which the second is the only reader of the first.
struct BodyLoop {
  std::int32_t node = -1;       ///< The node whose outputs the loop writes.
  std::int32_t joined = -1;     ///< The node that the loop computes first, without storing its result, or -1.
  std::size_t operand = 0;      ///< The operand of `node` that is the result of `joined`.
  std::vector<ValueId> inputs;  ///< The values that the loop reads.
};

/// Returns the loops of a body in the order of its nodes.
std::vector<BodyLoop> body_loops(const Tape& body);

}  // namespace xtape
