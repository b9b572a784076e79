/// How much stack is left, for what recurses as deep as its input says.
#pragma once

#include <cstddef>

namespace xtape {

/// Bytes of the calling thread's stack below this call; 0 where the thread has used them up.
std::size_t stack_left();

}  // namespace xtape
