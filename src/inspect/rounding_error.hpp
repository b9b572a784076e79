/// The op that compares a value with its float64 shadow.
#pragma once

#include "kernels/math/rounding.hpp"
#include "xtape/op/op.hpp"

namespace xtape {

/// rounding_error(value, local, exact) -> (error, squares). `value` is a value of the play. `local` is the result in
/// float64 of the node that computes the value, on the node's own operands. `exact` is the same value in the play in
/// float64. `error` is the difference `exact - value`, as float32 in the value's shape. Where this difference is not
/// finite, `error` is 0. `squares` holds one RoundingSquares for each piece of the value, float64 (pieces, 5).
const Op& rounding_error_op();

/// Returns the sum of `squares` over the pieces.
RoundingSquares sum_of(const ArrayView& squares);

}  // namespace xtape
