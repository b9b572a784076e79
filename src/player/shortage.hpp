/// What is said where a plan needs more memory than this process can have.
#pragma once

#include <string>

#include "plan.hpp"

namespace xtape {

/// Throws Error, naming the node's op and its place, where an array of `type` alone takes more than this process can have.
void require_memory(const Node& node, const ValueType& type);

/// The same for an operand that may repeat elements and so take little memory: where it is more than any address space
/// holds, so that kernels may count its bytes, times small numbers, in 64 bits.
void require_countable(const Node& node, const ValueType& type);

/// Throws Error where the plan's buffers take more than this process can have, naming the op of the largest.
void require_memory(const PlannedProgram& planned);

/// Throws Error for a plan whose memory the system refused, naming the op of the largest buffer.
[[noreturn]] void out_of_memory(const PlannedProgram& planned, const std::string& why);

}  // namespace xtape
