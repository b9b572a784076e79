/// The first difference of two tapes.
#pragma once

#include <string>

#include "xtape/tape.hpp"

namespace xtape {

/// Describes the first node in which the tapes differ, with the nodes of both; "" if they record the same. Lines of
/// programs and the elements of parameters do not count, the keys of random calls and the elements of constants do.
std::string first_difference(const Tape& a, const Tape& b);

}  // namespace xtape
