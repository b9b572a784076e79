/// Sorting, search and counting, under the names of PyTorch. The functions accept numbers, not bool. NaN counts as the
/// largest number. Equal elements keep their order. All functions promote, record and throw like those in
/// xtape/ops.hpp.
///
/// There is no `unique`, because the shape of its result would depend on values. To count known values, use bincount.
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
/// The first k elements of the sorted axis, and their int64 indices. Throws ShapeError if k is negative or larger than
/// the axis.
std::pair<Var, Var> top_k(const Argument& x, std::int64_t k, std::int64_t axis, bool largest = true);
/// The k-th smallest element and its int64 index. The axis is dropped, or kept with size 1 if `keepdims`. Throws
/// ShapeError if k is not between 1 and the size of the axis.
std::pair<Var, Var> kthvalue(const Argument& x, std::int64_t k, std::int64_t axis = -1, bool keepdims = false);

// Reductions over axes, like those in xtape/ops.hpp. They throw ShapeError if there are no elements to reduce. The
// result is NaN if an element is NaN. Functions whose names begin with "nan" ignore NaN instead.
/// Returns the median. For an even number of elements, it is the lower of the two middle ones. The gradient flows to
/// this element.
Var median(const Argument& x, const Axes& axis = {}, bool keepdims = false);
Var nanmedian(const Argument& x, const Axes& axis = {}, bool keepdims = false);  ///< NaN if all elements are NaN.
/// Quantiles of floats. The quantile q is at position q * (n - 1) of the n sorted elements. q is a scalar or a vector.
/// For a vector, the result has shape [len(q), reduced shape…]. Playing throws Error if q is outside [0, 1].
/// `interpolation` selects the method between two elements: "linear", "lower", "higher", "nearest" or "midpoint".
/// "linear" is also differentiable with respect to q. "nearest" resolves ties to the even position.
Var quantile(const Argument& x, const Operand& q, const Axes& axis = {}, bool keepdims = false,
             const std::string& interpolation = "linear");
Var nanquantile(const Argument& x, const Operand& q, const Axes& axis = {}, bool keepdims = false,
                const std::string& interpolation = "linear");

// The following functions are not differentiable, except with respect to weights.
/// Returns int64 [..., m] for sorted rows [..., n] and values [..., m]: the insertion index of each value in its row.
/// The index is the number of elements < value, or <= value with `right`. If there is a single row [n], the values may
/// have any shape. Whether the rows are sorted is not checked.
Var searchsorted(const Argument& sorted, const Operand& values, bool right = false);
/// Returns the bucket index of each x for the boundaries [n]. It is searchsorted with swapped arguments. An x that
/// equals a boundary belongs to the bucket before this boundary. With `right`, it belongs to the bucket after this
/// boundary.
Var bucketize(const Argument& x, const Var& boundaries, bool right = false);
/// Returns int64 [length]: how often each of 0 … length - 1 occurs in the integers x, which may have any shape. With
/// float weights of x's shape, the result is the sum of the weights per value, in the dtype of the weights. Playing
/// throws Error if an x is outside [0, length).
Var bincount(const Argument& x, std::int64_t length);
Var bincount(const Argument& x, std::int64_t length, const Var& weights);
/// Returns [n - 1] counts of the elements of x in the bins between the ascending edges [n], like np.histogram. x has
/// any shape. A bin contains its lower edge. The last bin also contains its upper edge. Elements outside the edges and
/// NaN do not count. Weights work as in bincount.
Var histogram(const Argument& x, const Var& edges);
Var histogram(const Argument& x, const Var& edges, const Var& weights);

}  // namespace xtape
