/// Conversion between the dtypes of floats.
#pragma once

#include "xtape/array.hpp"

namespace xtape {

/// Writes the elements of `from`, rounded to the dtype of `to`, to `to`. Both arrays are floats of the same shape. Uses
/// all threads.
void convert_floats(const Array& from, Array& to);

}  // namespace xtape
