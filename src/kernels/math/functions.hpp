/// Elementwise functions without a kernel in any instruction set. One loop calls a C function for each element.
#pragma once

#include <cstdint>

#include "kernels/table/kernel_form.hpp"
#include "xtape/array.hpp"
#include "xtape/op/kernel.hpp"

namespace xtape {

/// The tile of a function of one or two floats of `dtype`. float32 is computed in double, so results are rounded once.
TileFunction tile_of(double (*function)(double), Dtype dtype);
TileFunction tile_of(double (*function)(double, double), Dtype dtype);
/// function(order, x) for each x.
TileFunction tile_of(double (*function)(double, double), double order, Dtype dtype);
/// The tile of a function of two integers of `dtype`, int32 or int64. The function is computed in int64, and the result
/// is truncated to the dtype.
TileFunction tile_of(std::int64_t (*function)(std::int64_t, std::int64_t), Dtype dtype);

/// The inverse of erf; +-inf at +-1, NaN outside [-1, 1]. Starts from the approximation of Winitzki (2008) and refines
/// it with Halley's method.
double inverse_erf(double x);
/// log |gamma(x)|. Unlike lgamma, it writes no global sign, so threads may call it.
double log_gamma(double x);
/// The derivative of log gamma: NaN at negative integers, -inf at 0 and inf at -0.
double digamma(double x);
/// The `order`-th derivative of digamma. `order` is an integer of at least 0. For order 0, the result is digamma(x).
double polygamma(double order, double x);

// The regularised incomplete gamma function, its inverse, and the quantiles of the Poisson distribution. The quantiles
// are computed from this function. Compiled once for all processors.

/// P(a, x), the distribution function of the gamma distribution of shape a. NaN unless a > 0 and x >= 0. Uses the
/// series if x < a + 1, otherwise the continued fraction. For a > 1e8, approximates the cube root of the gamma variable
/// by a normal variable (Wilson and Hilferty, 1931).
double gammainc(double a, double x);
/// The x with P(a, x) = p, computed by Halley's method between bounds. NaN unless a > 0 and p is in [0, 1].
double gammaincinv(double a, double p);
/// The smallest integer k with P(X <= k) >= p for a Poisson variable X of this rate. NaN unless p is in [0, 1] and the
/// rate is finite and at least 0.
double poisson_quantile(double p, double rate);

// Roots of sums of squares that neither overflow nor underflow. Compiled once for all processors.

/// From this sum on, the squares that underflow change no bit of sums of up to 2^29 elements.
constexpr double least_exact_sum(Dtype dtype) {
  return dtype == Dtype::float64 ? 0x1p-960 : 0x1p-96;
}

/// Returns the kernel of root_of_squares. The inputs have any layout, and the output is dense. The kernel reads x only
/// where a sum of squares is too large or too small.
Kernel make_root_of_squares(const KernelForm& form);

}  // namespace xtape
