/// What the rows of ops that make arrays share.
#pragma once

#include "xtape/op.hpp"

namespace xtape {

const Op& zeros_op();  ///< For rules that leave out what adds nothing.

/// The attribute "shape" of a call. Throws ShapeError where it is no shape.
Shape shape_attribute(const Call& call);
Attribute shape_value(const Shape& shape);  ///< A shape as the value of an attribute.

}  // namespace xtape
