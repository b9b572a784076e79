/// Sums of the squares of rounding errors.
#pragma once

#include <cstdint>

namespace xtape {

/// Sums of squares, of the elements that are finite.
struct RoundingSquares {
  double values = 0;     ///< Of the play in float64.
  double made = 0;       ///< Of the node's error: against the node in float64 on its own operands.
  double inherited = 0;  ///< Of the difference between these two float64 values.
  double total = 0;      ///< Of the error against the play in float64.
  double overflows = 0;  ///< Not of squares: the number of elements that are finite in only one of both plays.
};

/// Compares a value with `local`, its node in float64 on its own operands, and with `exact`, the same of the play in
/// float64. error = exact - value, or 0 where that is not finite.
template <class T>
RoundingSquares compare_rounded(const T* value, const double* local, const double* exact, float* error,
                                std::int64_t count);

}  // namespace xtape
