/// More reductions and running reductions. All are compositions of other ops; docs/ops.md has the formulas. Axes,
/// `keepdims` and errors are as those of the reductions of xtape/ops.hpp, whose max and min are PyTorch's amax and
/// amin.
#pragma once

#include <cstdint>
#include <utility>

#include "xtape/ops.hpp"

namespace xtape {

/// The product. Its gradient is right where elements are 0. Integers and bool: int64. 1 if empty.
Var prod(const Argument& x, const Axes& axis = {}, bool keepdims = false);
/// The square root of variance(x), with gradient 0 where that is 0. Op "std", a name that C++ has for itself. The
/// correction is 0 as NumPy's; PyTorch's is 1.
Var standard_deviation(const Argument& x, const Axes& axis = {}, bool keepdims = false, std::int64_t correction = 0);
/// The int64 index of the smallest element: the first of equal ones, or of NaNs. Not differentiable. Throws ShapeError
/// over no elements, DtypeError for bool.
Var argmin(const Argument& x, std::int64_t axis = -1, bool keepdims = false);
Var nansum(const Argument& x, const Axes& axis = {}, bool keepdims = false);   ///< The sum of all that is not NaN.
Var nanmean(const Argument& x, const Axes& axis = {}, bool keepdims = false);  ///< The mean of all that is not NaN.
/// The int64 number of elements that are not 0 (NaN is not 0), or that are true. Not differentiable.
Var count_nonzero(const Argument& x, const Axes& axis = {}, bool keepdims = false);
/// The norm of order p of the elements (float): sum(|x| ** p) ** (1 / p); for infinite p the largest (or for -inf the
/// smallest) |x|, for 0 the number of elements that are not 0. The gradient at 0 is 0.
Var vector_norm(const Argument& x, double p = 2, const Axes& axis = {}, bool keepdims = false);

// Along one axis, up to and including each element.
/// The products. Their gradient is right where elements are 0. Integers and bool: int64.
Var cumprod(const Argument& x, std::int64_t axis = -1);
/// The largest elements so far and their int64 indices, the last of equal ones. NaN stays the largest. Not of bool.
std::pair<Var, Var> cummax(const Argument& x, std::int64_t axis = -1);
std::pair<Var, Var> cummin(const Argument& x, std::int64_t axis = -1);  ///< The smallest ones, in the same way.
/// log(cumsum(exp(x))) without overflow (float). -inf, with gradient 0, as long as all elements are -inf.
Var logcumsumexp(const Argument& x, std::int64_t axis = -1);

}  // namespace xtape
