/// Checks whether arrays are finite.
#pragma once

#include "xtape/array.hpp"

namespace xtape {

/// Returns whether no element of a dense array is NaN or infinite. Arrays of other dtypes than floats are always
/// finite.
bool all_finite(const ArrayView& values);

}  // namespace xtape
