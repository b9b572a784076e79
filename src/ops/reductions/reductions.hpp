/// Shared helpers of the reductions for their attributes "axis" and "keepdims".
#pragma once

#include <cstdint>
#include <vector>

#include "ops/recording/op_helpers.hpp"

namespace xtape {

/// Defines the typed function of a reduction that has only these attributes.
#define XTAPE_REDUCTION(name)                                             \
  Var name(const Argument& x, const Axes& axis, bool keepdims) {          \
    return call_op(#name, {x}, {{"axis", axis}, {"keepdims", keepdims}}); \
  }

std::vector<AttributeSpec> reduction_attributes();
inline const std::vector<std::int64_t>& axes_of(const Attributes& attributes) {
  return attributes.get<std::vector<std::int64_t>>("axis");
}

/// Returns for each of `rank` axes whether it is reduced. An empty `axis` reduces all of them. Throws ShapeError if an
/// axis is out of range or given twice.
std::vector<bool> reduced_axes(const std::vector<std::int64_t>& axis, std::size_t rank);
Shape reduced_shape(const Shape& shape, const std::vector<bool>& reduced, bool keepdims);

/// Returns the type of the reduction of the call's first input, with elements of this dtype.
std::vector<ValueType> reduced_type(const OpCall& call, Dtype dtype);

/// Returns how many elements of an array of `shape` are reduced to one element of the result.
std::int64_t reduced_count(const Shape& shape, const std::vector<std::int64_t>& axis);

/// Reshapes `y` so that the reduced axes have size 1. `y` has the shape of a reduction of `x` with these attributes.
Var with_reduced_axes(const Var& y, const Var& x, const Attributes& attributes);

/// If `y` is a standard deviation or a norm of order 2, records its square without the root, and returns it. The root
/// has no second derivative at 0, but its square has. Returns an empty var for other values.
Var square_of_root(const Var& y);

}  // namespace xtape
