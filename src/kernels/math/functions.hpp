/// Functions of one or two float64 numbers, and the loops of functions that are computed in float64.
#pragma once

#include <map>
#include <string_view>

#include "kernels/table/kernel_form.hpp"

namespace xtape {

/// The functions have the bits of the ops of the same names; pow is more exact. Higher layers call them through
/// `kernels().numbers`, in place of the C library's functions, whose bits depend on its version and on the processor.
namespace number_math {

double exp(double x);
double log(double x);
double sin(double x);
double cos(double x);
double pow(double x, double y);

/// The `order`-th derivative of digamma. `order` is an integer of at least 0. For order 0, the result is digamma(x).
double polygamma(double order, double x);

// The regularised incomplete gamma function, its inverse, and the quantiles of the Poisson distribution. The quantiles
// are computed from this function.

/// P(a, x), the distribution function of the gamma distribution of shape a. NaN unless a > 0 and x >= 0. Uses the
/// series if x < a + 1, otherwise the continued fraction. For a > 1e8, approximates the cube root of the gamma variable
/// by a normal variable (Wilson and Hilferty, 1931).
double gammainc(double a, double x);
/// The x with P(a, x) = p, computed by Halley's method between bounds. NaN unless a > 0 and p is in [0, 1].
double gammaincinv(double a, double p);
/// The smallest integer k with P(X <= k) >= p for a Poisson variable X of this rate. NaN unless p is in [0, 1] and the
/// rate is finite and at least 0.
double poisson_quantile(double p, double rate);

}  // namespace number_math

/// The functions that other layers call.
struct NumberFunctions {
  double (*exp)(double) = number_math::exp;
  double (*log)(double) = number_math::log;
  double (*sin)(double) = number_math::sin;
  double (*cos)(double) = number_math::cos;
  double (*pow)(double, double) = number_math::pow;
};

/// Makes the loop of an elementwise op.
using TileMaker = TileFunction (*)(const KernelForm&);
/// The loops of functions that are computed in float64. float32 is widened, so results are rounded once.
std::map<std::string_view, TileMaker> wide_functions();

}  // namespace xtape
