/// The first difference of two tapes.
#pragma once

#include <string>

#include "xtape/tape.hpp"

namespace xtape {

/// Whether the attributes of two calls of one op have the same bits: NaN is NaN, but 0 is not -0.
bool same_attributes(const Attributes& a, const Attributes& b);

/// Describes the first node in which the tapes differ, with the nodes of both; "" if they record the same. Lines of
/// programs and the elements of parameters do not count, the keys of random calls and the elements of constants do.
std::string first_difference(const Tape& a, const Tape& b);

}  // namespace xtape
