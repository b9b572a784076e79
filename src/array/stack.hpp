/// The remaining stack space, for functions whose recursion depth depends on their input.
#pragma once

#include <cstddef>

namespace xtape {

/// Bytes of the calling thread's stack that are left below this call; SIZE_MAX if the call runs on another stack at a
/// lower address, such as a fiber's.
std::size_t stack_left();

}  // namespace xtape
