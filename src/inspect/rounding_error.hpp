/// The op that compares a value with its float64 shadow.
#pragma once

#include "rounding.hpp"
#include "xtape/op/op.hpp"

namespace xtape {

/// rounding_error(value, local, exact) -> (error, squares): a value, its node in float64 on its own operands, and the
/// same of the play in float64. `error` is float32 of the value's shape: exact - value, 0 where that is not finite.
/// `squares` holds one RoundingSquares for each piece of the value, float64 (pieces, 5).
const Op& rounding_error_op();

/// The sum of the pieces of `squares`.
RoundingSquares sum_of(const ArrayView& squares);

}  // namespace xtape
