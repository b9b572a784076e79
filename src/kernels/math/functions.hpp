/// Elementwise functions without a kernel in any instruction set. One loop calls a C function for each element.
#pragma once

#include <cstdint>

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

}  // namespace xtape
