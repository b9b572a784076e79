/// Sums of the squares of rounding errors.
#pragma once

#include <cstdint>

namespace xtape {

/// Sums of squares over the finite elements.
struct RoundingSquares {
  double values = 0;  ///< For the values of the play in float64.
  double made = 0;    ///< For the node's own error, compared with the node in float64 on the same operands.
  /// For the inherited error: the node in float64 on the same operands, compared with the play in float64.
  double inherited = 0;
  double total = 0;      ///< For the total error, compared with the play in float64.
  double overflows = 0;  ///< Not a sum of squares: the number of elements that are finite in only one of the two plays.
};

/// The number of elements per RoundingSquares. It does not depend on threads.
constexpr std::int64_t rounding_piece = 1 << 14;

}  // namespace xtape
