/// More indexing, and moves of elements, with PyTorch's names and argument order (NumPy's or JAX's where PyTorch has no
/// such function). docs/ops.md has the formulas.
///
/// Indices are int32 or int64; those below 0 count from the end. An index outside [-size, size) makes the play throw
/// Error. All functions throw ShapeError, DtypeError, HandleError and Error as those of ops.hpp do; then nothing is
/// recorded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "xtape/ops.hpp"

namespace xtape {

// Along one axis ------------------------------------------------------------------------------------------------------
/// The elements of x at the indices along `axis`; the other axes of the two broadcast: for axis 1 of two, y[a, b] =
/// x[a, indices[a, b]]. As torch.take_along_dim.
Var take_along_axis(const Argument& x, const Var& indices, std::int64_t axis);
/// The slices of x at the indices [k] along an axis, which gets size k. Unlike take, indices may be negative.
Var index_select(const Argument& x, std::int64_t axis, const Var& indices);
/// x with the elements of `part` at the indices along `axis`: for axis 1 of two, y[a, indices[a, b]] = part[a, b]. Of
/// equal indices the last one wins. `part` has the shape of `indices`, no axis of which but `axis` is longer than x's.
Var scatter(const Argument& x, std::int64_t axis, const Var& indices, const Var& part);
/// The same with all elements combined by `reduce`: "set", "sum", "prod", "mean", "amax" or "amin". Without
/// `include_self`, the elements of x that are indexed do not count. Equal elements share the gradient of amax and amin
/// equally. The gradient of prod is right where elements are 0, and so is its own.
Var scatter_reduce(const Argument& x, std::int64_t axis, const Var& indices, const Var& part, const std::string& reduce,
                   bool include_self = true);

// Along several axes, as ONNX's GatherND and ScatterND ----------------------------------------------------------------
/// The elements, or slices, of x at the indices [..., k] along its first k axes: y[i…] = x[indices[i…, 0], …].
Var gather_nd(const Argument& x, const Var& indices);
/// x with the slices of `part` there, combined by `reduce` as in scatter_reduce. `part` has the shape of gather_nd's
/// result.
Var scatter_nd(const Argument& x, const Var& indices, const Var& part, const std::string& reduce = "set");

// Segments ------------------------------------------------------------------------------------------------------------
// As jax.ops: of data [n, ...], the elements with the same number in segment_ids [n], which need not be sorted, give one
// of num_segments results. A number outside [-num_segments, num_segments) makes the play throw Error; jax.ops leaves
// such elements out.
Var segment_sum(const Argument& data, const Var& segment_ids, std::int64_t num_segments);   ///< 0 of no elements.
Var segment_mean(const Argument& data, const Var& segment_ids, std::int64_t num_segments);  ///< Float. 0 of none.
Var segment_prod(const Argument& data, const Var& segment_ids, std::int64_t num_segments);  ///< 1 of no elements.
/// -inf, or the least integer, of no elements. Equal elements share the gradient.
Var segment_max(const Argument& data, const Var& segment_ids, std::int64_t num_segments);
Var segment_min(const Argument& data, const Var& segment_ids, std::int64_t num_segments);  ///< The opposite.
/// exp(data) over the sum of these in the segment, of the shape of data (float). A segment of -inf gives zeros.
Var segment_softmax(const Argument& data, const Var& segment_ids, std::int64_t num_segments);

// Products of groups of rows, as jax.lax.ragged_dot: mixtures of experts ------------------------------------------------
// group_sizes [g], integers, has the numbers of rows of the groups, which follow each other. A size below 0, or a sum
// above m, makes the play throw Error.
/// y [m, n] of x [m, k] and weights [g, k, n]: y[i] = x[i] weights[j] for each row i of group j; 0 for rows of no group.
Var ragged_dot(const Argument& x, const Var& weights, const Var& group_sizes);
/// The gradient for the weights: [g, k, n] of x [m, k] and y [m, n], for each group the sum of x[i]ᵀ y[i] over its rows.
Var ragged_dot_weights(const Argument& x, const Var& y, const Var& group_sizes);

// Results of a fixed size, since shapes do not depend on values -------------------------------------------------------
/// The int64 indices [size, rank] of the first `size` elements that are not 0 or are true, in row-major order; rows of
/// `fill_value` follow if there are fewer. As torch.nonzero_static. Not differentiable.
Var nonzero_static(const Argument& x, std::int64_t size, std::int64_t fill_value = -1);
/// [size]: the first `size` elements of x where `mask` (bool, broadcasting to x) is true, then `fill_value`s.
Var masked_select(const Argument& x, const Var& mask, std::int64_t size, const Literal& fill_value = 0);

// Moves, of any dtype -------------------------------------------------------------------------------------------------
/// The elements moved by shifts[i] places along axis[i]; those that leave at the end come back at the start. Without
/// axes, x is moved as if it were flat.
Var roll(const Argument& x, const std::vector<std::int64_t>& shifts, const Axes& axis = {});
/// Each slice along `axis` `repeats` times in a row, as numpy.repeat.
Var repeat_interleave(const Argument& x, std::int64_t repeats, std::int64_t axis);
/// Arrays of one axis, each broadcast to the grid of all of them: with indexing "ij", array i varies along axis i; with
/// "xy", the first two axes change places. Views.
Vars meshgrid(const Vars& xs, const std::string& indexing = "ij", Caller caller = Caller::here());
/// x with before[i] and after[i] elements at the two ends of axis i, by PyTorch's or NumPy's name of the mode:
/// "reflect" (mirrored at the last element, which is not repeated), "replicate" or "edge" (the last element),
/// "circular" or "wrap" (the elements from the other end). Throws ShapeError where the axis is too short: reflect needs
/// more elements than it adds, circular as many.
Var pad(const Argument& x, const std::vector<std::int64_t>& before, const std::vector<std::int64_t>& after,
        const std::string& mode);

}  // namespace xtape
