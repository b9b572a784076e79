/// More reductions and running reductions. All are compositions of other ops; docs/reference/ops/reductions.md has the
/// formulas. Axes, `keepdims` and errors follow the reductions in xtape/ops.hpp. There, max and min correspond to
/// PyTorch's amax and amin.
#pragma once

#include <cstdint>
#include <utility>

#include "xtape/ops.hpp"

namespace xtape {

/// The product. The gradient is exact, also if elements are 0. The product of integers or bool is int64. The empty
/// product is 1.
Var prod(const Argument& x, const Axes& axis = {}, bool keepdims = false);
/// The square root of variance(x). The gradient is 0 where the variance is 0. The op is named "std". The C++ function
/// has another name because std is a namespace. The default correction is 0 as in NumPy; PyTorch's default is 1.
Var standard_deviation(const Argument& x, const Axes& axis = {}, bool keepdims = false, std::int64_t correction = 0);
/// Returns the int64 index of the smallest element. Ties give the first index. If there are NaNs, the result is the
/// index of the first NaN. Not differentiable. Throws ShapeError if there are no elements, DtypeError if x is bool.
Var argmin(const Argument& x, std::int64_t axis = -1, bool keepdims = false);
Var nansum(const Argument& x, const Axes& axis = {}, bool keepdims = false);   ///< The sum of all elements except NaN.
Var nanmean(const Argument& x, const Axes& axis = {}, bool keepdims = false);  ///< The mean of all elements except NaN.
/// The int64 number of elements that are nonzero or true. NaN counts as nonzero. Not differentiable.
Var count_nonzero(const Argument& x, const Axes& axis = {}, bool keepdims = false);
/// The p-norm of float elements: sum(|x| ** p) ** (1 / p). p = inf gives the largest |x|, p = -inf gives the smallest
/// |x|, and p = 0 gives the number of nonzero elements. The gradient at 0 is 0.
Var vector_norm(const Argument& x, double p = 2, const Axes& axis = {}, bool keepdims = false);
/// x, with every slice along `axis` (x[i, …] for axis 0) multiplied by maxnorm / (norm + 1e-7) if its p-norm is above
/// maxnorm. Throws ShapeError if x has fewer than two axes, Error if p <= 0, or if maxnorm is negative or not finite.
Var renorm(const Argument& x, double p, std::int64_t axis, double maxnorm);

// Cumulative functions along one axis. Each element of the result covers the elements of x up to its own index,
// inclusive.
/// The cumulative product. The gradient is exact, also if elements are 0. The product of integers or bool is int64.
Var cumprod(const Argument& x, std::int64_t axis = -1);
/// The running maximum and its int64 index. Ties give the last index. Once an element is NaN, the maximum stays NaN.
/// Does not accept bool.
std::pair<Var, Var> cummax(const Argument& x, std::int64_t axis = -1);
/// The running minimum and its int64 index, with the rules of cummax.
std::pair<Var, Var> cummin(const Argument& x, std::int64_t axis = -1);
/// log(cumsum(exp(x))) without overflow, for floats. Where all elements so far are -inf, the result is -inf with
/// gradient 0.
Var logcumsumexp(const Argument& x, std::int64_t axis = -1);

}  // namespace xtape
