/// The remaining stack space, for functions whose recursion depth depends on the input.
#pragma once

#include <cstddef>

namespace xtape {

/// Returns the number of bytes of the calling thread's stack that are left below this call. Returns SIZE_MAX if the
/// call runs on another stack at a lower address, such as a fiber's stack.
std::size_t stack_left();

}  // namespace xtape
