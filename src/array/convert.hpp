/// Conversion between the dtypes of floats.
#pragma once

#include "xtape/array.hpp"

namespace xtape {

/// Writes the elements of `from` to `to`, of the same shape, rounded to its dtype. Both are of floats. Uses all
/// threads.
void convert_floats(const Array& from, Array& to);

}  // namespace xtape
