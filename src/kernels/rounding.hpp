/// Sums of the squares of rounding errors.
#pragma once

#include <cstdint>

namespace xtape {

/// Sums of squares, of the elements that are finite.
struct RoundingSquares {
  double values = 0;     ///< For the values of the play in float64.
  double made = 0;       ///< For the node's error: against the node in float64 on its own operands.
  double inherited = 0;  ///< For the difference between these two float64 values.
  double total = 0;      ///< For the error against the play in float64.
  double overflows = 0;  ///< Not of squares: the number of elements that are finite in only one of both plays.
};

/// The number of elements of which one RoundingSquares is the sum: threads do not change it.
constexpr std::int64_t rounding_piece = 1 << 14;

}  // namespace xtape
