/// More indexing ops and permutations of elements, with PyTorch's names and argument order, or NumPy's or JAX's if
/// PyTorch has no such function. docs/reference/ops/indexing.md has the formulas.
///
/// Indices are int32 or int64. Negative indices count from the end. Playing throws Error if an index is outside [-size,
/// size). All functions throw ShapeError, DtypeError, HandleError and Error like those of ops.hpp. After an error,
/// nothing is recorded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "xtape/ops.hpp"

namespace xtape {

// Along one axis ------------------------------------------------------------------------------------------------------
/// The elements of x at the indices along `axis`, like torch.take_along_dim. The other axes of x and of the indices
/// broadcast. If x has two axes and `axis` is 1, then y[a, b] = x[a, indices[a, b]].
Var take_along_axis(const Argument& x, const Var& indices, std::int64_t axis);
/// The slices of x at the indices [k] along an axis, which gets size k. Unlike in take, indices can be negative.
Var index_select(const Argument& x, std::int64_t axis, const Var& indices);
/// x with the elements of `part` written at the indices along `axis`. If x has two axes and `axis` is 1, then y[a,
/// indices[a, b]] = part[a, b]. For equal indices, the last element wins. `part` has the shape of `indices`. Along all
/// other axes, `indices` must not be longer than x.
Var scatter(const Argument& x, std::int64_t axis, const Var& indices, const Var& part);
/// Like scatter, but combines all elements with the same index by `reduce`: "set", "sum", "prod", "mean", "amax" or
/// "amin". The element of x at the index also counts, unless include_self is false. Equal elements share the gradient
/// of amax and amin equally. The first and second derivatives of prod are exact, also if elements are 0.
Var scatter_reduce(const Argument& x, std::int64_t axis, const Var& indices, const Var& part, const std::string& reduce,
                   bool include_self = true);

// Along several axes, like ONNX's GatherND and ScatterND --------------------------------------------------------------
/// The elements or slices of x at the indices [..., k], which refer to the first k axes of x: y[i…] = x[indices[i…, 0],
/// …].
Var gather_nd(const Argument& x, const Var& indices);
/// x with the slices of `part` written at the indices. The indices have the same meaning as in gather_nd. `reduce`
/// combines slices with equal indices as in scatter_reduce. `part` has the shape of gather_nd's result.
Var scatter_nd(const Argument& x, const Var& indices, const Var& part, const std::string& reduce = "set");

// Segments ------------------------------------------------------------------------------------------------------------
// Reductions of segments, like jax.ops. The elements of data [n, ...] with equal numbers in segment_ids [n] form a
// segment. The result has one entry for each of num_segments segments. The ids need not be sorted. Playing throws Error
// if an id is outside [-num_segments, num_segments); jax.ops ignores such elements.
Var segment_sum(const Argument& data, const Var& segment_ids, std::int64_t num_segments);  ///< 0 for an empty segment.
/// The mean as a float. 0 for an empty segment.
Var segment_mean(const Argument& data, const Var& segment_ids, std::int64_t num_segments);
Var segment_prod(const Argument& data, const Var& segment_ids, std::int64_t num_segments);  ///< 1 for an empty segment.
/// An empty segment gives -inf, or the least integer of the dtype. Equal elements share the gradient.
Var segment_max(const Argument& data, const Var& segment_ids, std::int64_t num_segments);
/// An empty segment gives inf, or the largest integer of the dtype.
Var segment_min(const Argument& data, const Var& segment_ids, std::int64_t num_segments);
/// exp(data) divided by its sum over the segment, with the shape of data (float). A segment whose elements are all -inf
/// gives zeros.
Var segment_softmax(const Argument& data, const Var& segment_ids, std::int64_t num_segments);

// Products of groups of rows, like jax.lax.ragged_dot, for mixtures of experts ----------------------------------------
// group_sizes [g], integers, contains the numbers of rows of consecutive groups. Playing throws Error if a size is
// negative or the sum exceeds the number of rows.
/// y [m, n] from x [m, k] and weights [g, k, n]: y[i] = x[i] weights[j] for each row i of group j. Rows of y that
/// belong to no group are 0.
Var ragged_dot(const Argument& x, const Var& weights, const Var& group_sizes);
/// The gradient with respect to the weights, [g, k, n], from x [m, k] and y [m, n]: for each group, the sum of x[i]ᵀ
/// y[i] over its rows.
Var ragged_dot_weights(const Argument& x, const Var& y, const Var& group_sizes);

// Results of a fixed size, because shapes cannot depend on values -----------------------------------------------------
/// The int64 indices [size, rank] of the first `size` elements that are nonzero or true, in row-major order, like
/// torch.nonzero_static. If there are fewer, rows of `fill_value` follow. Not differentiable.
Var nonzero_static(const Argument& x, std::int64_t size, std::int64_t fill_value = -1);
/// [size]: the first `size` elements of x where `mask` (bool, broadcasting to x) is true. If there are fewer,
/// `fill_value` fills the rest.
Var masked_select(const Argument& x, const Var& mask, std::int64_t size, const Literal& fill_value = 0);

// Permutations and copies of elements of any dtype --------------------------------------------------------------------
/// Rolls the elements by shifts[i] places along axis[i]. Elements that leave at the end return at the start. Without
/// axes, rolls x as if it were flat.
Var roll(const Argument& x, const std::vector<std::int64_t>& shifts, const Axes& axis = {});
/// Repeats each slice along `axis`, like numpy.repeat. The `repeats` copies of a slice follow each other.
Var repeat_interleave(const Argument& x, std::int64_t repeats, std::int64_t axis);
/// Broadcasts vectors to their common grid. With indexing "ij", array i varies along axis i. With "xy", the first two
/// axes are swapped. The results are views.
Vars meshgrid(const Vars& xs, const std::string& indexing = "ij", Caller caller = Caller::here());
/// x with before[i] and after[i] elements at the two ends of axis i. `mode` is a name of PyTorch or NumPy: "reflect"
/// (mirrors at the last element, which is not repeated), "replicate" or "edge" (repeats the last element), "circular"
/// or "wrap" (takes the elements from the other end). Throws ShapeError if the axis is too short. The axis needs more
/// elements than "reflect" adds at one end, or at least as many as "circular" adds at one end.
Var pad(const Argument& x, const std::vector<std::int64_t>& before, const std::vector<std::int64_t>& after,
        const std::string& mode);

}  // namespace xtape
