/// Errors for plans that need more memory than this process can use.
#pragma once

#include <string>

#include "player/plan/plan.hpp"

namespace xtape {

/// Throws Error if an array of `type` alone takes more memory than `most`. The message names the node's op and source
/// location. `most` is memory_limit(), the memory that this process can use.
void require_memory(const Node& node, const ValueType& type, std::size_t most);

/// Throws Error if a dense array of `type` would exceed the address space of current processors. Use this check for an
/// operand that may repeat elements, and may therefore take less memory than a dense array. The check allows kernels to
/// compute small multiples of the number of bytes in 64 bits.
void require_countable(const Node& node, const ValueType& type);

/// Throws Error if the plan's buffers take more memory than this process can use. The message names the op of the
/// largest buffer.
void require_memory(const PlannedProgram& planned);

/// Describes a step for messages: "tanh -> float32 (2, 3) at …".
std::string described(const PlannedProgram& planned, const PlannedStep& step);

/// Throws Error for a plan whose memory could not be allocated. The message names the op of the largest buffer and the
/// reason `why`.
[[noreturn]] void out_of_memory(const PlannedProgram& planned, const std::string& why);

}  // namespace xtape
