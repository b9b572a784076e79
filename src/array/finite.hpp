/// Whether arrays are finite.
#pragma once

#include "xtape/array.hpp"

namespace xtape {

/// Whether no element of a dense array is NaN or infinite. Arrays that are not of floats are finite.
bool all_finite(const ArrayView& values);

}  // namespace xtape
