#include "rounding.hpp"

#include <cmath>
#include <limits>

namespace xtape {

namespace {
bool is_finite(double x) {
  return std::abs(x) <= std::numeric_limits<double>::max();  // false for NaN
}
double finite(double x) {
  return is_finite(x) ? x : 0;
}
}  // namespace

template <class T>
RoundingSquares compare_rounded(const T* value, const double* local, const double* exact, float* error,
                                std::int64_t count) {
  double values = 0, made = 0, inherited = 0, total = 0, overflows = 0;
#pragma omp simd reduction(+ : values, made, inherited, total, overflows)
  for (std::int64_t i = 0; i < count; ++i) {
    const auto rounded = static_cast<double>(value[i]);
    const double right = finite(exact[i]), own = finite(local[i] - rounded);
    const double of_operands = finite(exact[i] - local[i]), all = finite(exact[i] - rounded);
    values += right * right;
    made += own * own;
    inherited += of_operands * of_operands;
    total += all * all;
    overflows += is_finite(rounded) != is_finite(exact[i]) ? 1 : 0;
    error[i] = static_cast<float>(all);
  }
  return {values, made, inherited, total, overflows};
}
template RoundingSquares compare_rounded<float>(const float*, const double*, const double*, float*, std::int64_t);
template RoundingSquares compare_rounded<double>(const double*, const double*, const double*, float*, std::int64_t);

}  // namespace xtape
