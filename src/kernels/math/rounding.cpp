#include "kernels/math/rounding.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/threads/threads.hpp"
#include "kernels/elements/scalar.hpp"
#include "kernels/table/kernel_form.hpp"

namespace xtape {

namespace {
bool is_finite(double x) {
  return std::abs(x) <= std::numeric_limits<double>::max();  // false for NaN
}
double finite(double x) {
  return is_finite(x) ? x : 0;
}

/// Compares a node's value with its value computed in float64 on the same operands (`local`), and with its value in the
/// float64 play (`exact`). error = exact - value, or 0 where this difference is not finite. The sums have eight lanes,
/// whatever the width of a register is.
template <class T>
RoundingSquares compare_rounded(const T* value, const double* local, const double* exact, float* error,
                                std::int64_t count) {
  constexpr std::int64_t lanes = 8;
  double values[lanes] = {}, made[lanes] = {}, inherited[lanes] = {}, total[lanes] = {}, overflows[lanes] = {};
  const auto visit = [&](std::int64_t i, std::int64_t lane) {
    const auto rounded = static_cast<double>(value[i]);
    const double right = finite(exact[i]), own = finite(local[i] - rounded);
    const double of_operands = finite(exact[i] - local[i]), all = finite(exact[i] - rounded);
    values[lane] += right * right;
    made[lane] += own * own;
    inherited[lane] += of_operands * of_operands;
    total[lane] += all * all;
    overflows[lane] += is_finite(rounded) != is_finite(exact[i]) ? 1 : 0;
    error[i] = static_cast<float>(all);
  };
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
#pragma omp simd
    for (std::int64_t lane = 0; lane < lanes; ++lane) visit(i + lane, lane);
  }
  for (std::int64_t lane = 0; i + lane < count; ++lane) visit(i + lane, lane);
  const auto sum = [](const double(&parts)[lanes]) { return std::accumulate(parts, parts + lanes, 0.0); };
  return {sum(values), sum(made), sum(inherited), sum(total), sum(overflows)};
}

Kernel make_rounding_error(const KernelForm& form) {
  const std::int64_t count = count_of(form.shape(0)), pieces = form.outputs[1].shape[0];
  return with_floating(form.dtype(0), [&](auto scalar) {
    using T = decltype(scalar);
    return Kernel{[count, pieces, threads = form.threads](const KernelArguments& arguments) {
      const T* value = in<T>(arguments, 0);
      const auto *local = in<double>(arguments, 1), *exact = in<double>(arguments, 2);
      auto* error = out<float>(arguments, 0);
      auto* squares = out<RoundingSquares>(arguments, 1);
      parallel_for(threads, pieces, 1, [=](std::int64_t begin, std::int64_t finish) {
        for (std::int64_t p = begin; p < finish; ++p) {
          const std::int64_t at = p * rounding_piece;
          squares[p] =
              compare_rounded(value + at, local + at, exact + at, error + at, std::min(rounding_piece, count - at));
        }
      });
    }};
  });
}
}  // namespace

KernelList list_rounding() {
  return {{"rounding_error", make_rounding_error}};
}

}  // namespace xtape
