/// More elementwise functions, with names and argument order of NumPy and PyTorch. docs/reference/ops/elementwise.md
/// has the formulas. The functions broadcast, convert, record and throw like those of xtape/ops.hpp. float32 results
/// are computed in double and rounded once, except for compositions of other ops (lerp and the functions that return
/// bool).
#pragma once

#include <cstdint>
#include <limits>

#include "xtape/tape.hpp"

namespace xtape {

// The results have x's dtype. Integers stay unchanged. Not differentiable.
Var round(const Argument& x);  ///< The nearest integer. Ties go to even.
Var ceil(const Argument& x);   ///< The smallest integer >= x.
Var trunc(const Argument& x);  ///< x rounded towards 0.

// Functions of floats.
Var tan(const Argument& x);      ///< The tangent, of x in radians.
Var asin(const Argument& x);     ///< The inverse sine, in [-pi / 2, pi / 2]; NaN outside [-1, 1].
Var acos(const Argument& x);     ///< The inverse cosine, in [0, pi]; NaN outside [-1, 1].
Var atan(const Argument& x);     ///< The inverse tangent, in [-pi / 2, pi / 2].
Var sinh(const Argument& x);     ///< (exp(x) - exp(-x)) / 2, accurate near 0.
Var cosh(const Argument& x);     ///< (exp(x) + exp(-x)) / 2.
Var asinh(const Argument& x);    ///< The inverse of sinh, accurate near 0.
Var acosh(const Argument& x);    ///< The inverse of cosh, >= 0; NaN where x < 1.
Var atanh(const Argument& x);    ///< The inverse of tanh, accurate near 0; +-inf at +-1, NaN beyond.
Var exp2(const Argument& x);     ///< 2 ** x.
Var log2(const Argument& x);     ///< The logarithm to base 2; -inf at 0, NaN where x < 0.
Var log10(const Argument& x);    ///< The logarithm to base 10; -inf at 0, NaN where x < 0.
Var erfc(const Argument& x);     ///< 1 - erf(x), accurate also for tiny results.
Var erfinv(const Argument& x);   ///< The inverse of erf; +-inf at +-1, NaN outside [-1, 1].
Var lgamma(const Argument& x);   ///< log |gamma(x)|; inf at 0, -1, -2 …
Var digamma(const Argument& x);  ///< The derivative of lgamma; NaN at negative integers, -inf at 0 and inf at -0.
/// The n-th derivative of digamma. Throws Error if n < 0.
Var polygamma(std::int64_t n, const Argument& x);
/// The regularised lower incomplete gamma function P(a, x), and its inverse: the x with P(a, x) = p. NaN unless a > 0,
/// x >= 0 and p is in [0, 1]. Accurate to 12 digits, or fewer for a above 1e6. The gradient with respect to a is
/// accurate to 9 digits.
Var gammainc(const Operand& a, const Operand& x);
Var gammaincinv(const Operand& a, const Operand& p);
/// The p-quantile of a Poisson distribution: the smallest integer k with P(X <= k) >= p for the given rate. Exact for
/// rates up to 1e8. Not differentiable.
Var poisson_quantile(const Operand& p, const Operand& rate);
/// The angle of the point (x, y), in [-pi, pi]. The gradient at (0, 0) is NaN.
Var atan2(const Operand& y, const Operand& x);
/// sqrt(a * a + b * b) without intermediate overflow or underflow. The gradient at (0, 0) is NaN.
Var hypot(const Operand& a, const Operand& b);
/// start + weight * (end - start). The result is exactly `end` where the weight is 1.
Var lerp(const Operand& start, const Operand& end, const Operand& weight);

// These functions of floats return bool. They convert integers to floats. Not differentiable.
Var isnan(const Argument& x);
Var isinf(const Argument& x);
Var isfinite(const Argument& x);
/// x (float) with NaN replaced by `nan`, inf by `posinf` and -inf by `neginf`. `posinf` and `neginf` are limited to the
/// finite numbers of the dtype, so the defaults mean the largest and the smallest finite number. No gradient flows to
/// replaced elements.
Var nan_to_num(const Argument& x, double nan = 0, double posinf = std::numeric_limits<double>::infinity(),
               double neginf = -std::numeric_limits<double>::infinity());
Var logical_xor(const Argument& a, const Var& b);  ///< bool, true if exactly one operand is true.

// Bitwise functions of integers in two's complement. They throw DtypeError for other dtypes. Not differentiable.
Var bitwise_and(const Operand& a, const Operand& b);
Var bitwise_or(const Operand& a, const Operand& b);
Var bitwise_xor(const Operand& a, const Operand& b);
Var bitwise_not(const Argument& x);
/// a * 2 ** b with wrapping. The result is 0 where b is negative or at least the number of bits of the dtype.
Var bitwise_left_shift(const Operand& a, const Operand& b);
/// floor(a / 2 ** b). Where b is negative or at least the number of bits of the dtype, the result is 0 if a >= 0, and
/// -1 if a < 0.
Var bitwise_right_shift(const Operand& a, const Operand& b);

}  // namespace xtape
