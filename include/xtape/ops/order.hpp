/// Order, search and counting, under the names of PyTorch. Numbers only, not bool. NaN counts as the largest number,
/// and equal elements keep their order. They promote, record and throw as the functions of xtape/ops.hpp do.
///
/// There is no `unique`: the shape of its result would depend on values. For the counts of known values, see bincount.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "xtape/ops.hpp"

namespace xtape {

/// The elements along `axis` in ascending or descending order, and their int64 indices.
std::pair<Var, Var> sort(const Argument& x, std::int64_t axis = -1, bool descending = false);
/// The indices of sort: int64 of x's shape. Not differentiable.
Var argsort(const Argument& x, std::int64_t axis = -1, bool descending = false);
/// The first k elements of the sorted axis, and their int64 indices. Throws ShapeError unless 0 <= k <= its size.
std::pair<Var, Var> top_k(const Argument& x, std::int64_t k, std::int64_t axis, bool largest = true);
/// The k-th smallest element, k from 1 to the size of the axis (else ShapeError), and its int64 index: the axis is
/// dropped, or with keepdims has size 1.
std::pair<Var, Var> kthvalue(const Argument& x, std::int64_t k, std::int64_t axis = -1, bool keepdims = false);

// Over axes, as the reductions of xtape/ops.hpp; ShapeError over no elements. NaN if there is a NaN, except for the
// functions whose names begin with nan, which leave it out.
/// The middle element, of an even number the lower one. The gradient goes to that element.
Var median(const Argument& x, const Axes& axis = {}, bool keepdims = false);
Var nanmedian(const Argument& x, const Axes& axis = {}, bool keepdims = false);  ///< NaN if there is nothing else.
/// Quantiles of floats, at position q * (n - 1) of the n sorted elements. q in [0, 1] (else the play throws Error) has
/// rank 0, or rank 1 for several at once: [q, …], the reduced shape behind them. Between two elements, `interpolation`
/// takes "linear" (also differentiable by q), "lower", "higher", "nearest" (of two equally near ones the one at an even
/// position) or "midpoint", the mean of both.
Var quantile(const Argument& x, const Operand& q, const Axes& axis = {}, bool keepdims = false,
             const std::string& interpolation = "linear");
Var nanquantile(const Argument& x, const Operand& q, const Axes& axis = {}, bool keepdims = false,
                const std::string& interpolation = "linear");

// Not differentiable, except for weights.
/// For rows [..., n] in ascending order and values [..., m], int64 [..., m]: how many elements of the row are smaller
/// than the value or, with `right`, not larger. One row [n] serves values of any shape. Rows are not checked.
Var searchsorted(const Argument& sorted, const Operand& values, bool right = false);
/// searchsorted with the arguments the other way round: the number of the interval of each x between the boundaries
/// [n]. An x on a boundary belongs to the interval before it or, with `right`, after it.
Var bucketize(const Argument& x, const Var& boundaries, bool right = false);
/// [length]: how often each of 0 … length - 1 occurs in the integers x of any shape, int64. With float weights of x's
/// shape, the sums of their weights, of the weights' dtype. An x outside [0, length) makes the play throw Error.
Var bincount(const Argument& x, std::int64_t length);
Var bincount(const Argument& x, std::int64_t length, const Var& weights);
/// [n - 1]: how many elements of x, of any shape, are in each interval between the ascending edges [n], as np.histogram
/// counts: an interval contains its lower edge, the last one both. Elements outside, and NaN, are left out. Weights as
/// for bincount.
Var histogram(const Argument& x, const Var& edges);
Var histogram(const Argument& x, const Var& edges, const Var& weights);

}  // namespace xtape
