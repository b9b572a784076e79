/// What the rows of reductions share: their attributes "axis" and "keepdims".
#pragma once

#include <cstdint>
#include <vector>

#include "xtape/op.hpp"

namespace xtape {

std::vector<AttributeSpec> reduction_attributes();

/// For each axis whether it is reduced. Throws ShapeError where an axis is out of range or named twice.
std::vector<bool> reduced_axes(const std::vector<std::int64_t>& axis, std::size_t rank);
Shape reduced_shape(const Shape& shape, const std::vector<bool>& reduced, bool keepdims);

/// How many elements of an array of `shape` go into each result.
std::int64_t count_behind(const Shape& shape, const std::vector<std::int64_t>& axis);

/// `y`, of the shape that reducing `x` with these attributes gives, with the reduced axes as axes of size 1.
Var with_reduced_axes(const Var& y, const Var& x, const Attributes& attributes);

}  // namespace xtape
