/// Conversion between the dtypes of floats.
#pragma once

#include "xtape/array.hpp"

namespace xtape {

/// Rounds the elements of `from` to the dtype of `to`, and writes the results to `to`. Both arrays are floats of the
/// same shape. Uses all threads.
void convert_floats(const Array& from, Array& to);

}  // namespace xtape
