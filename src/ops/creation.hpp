/// What the rows of ops that make arrays share.
#pragma once

#include "xtape/op.hpp"

namespace xtape {

const Op& zeros_op();  ///< For rules that leave out what adds nothing.

/// The attribute "shape" of a call. Throws ShapeError where it is no shape.
Shape shape_attribute(const Call& call);
Attribute shape_value(const Shape& shape);  ///< A shape as the value of an attribute.

/// The attribute "dtype" that says which float a row makes.
AttributeSpec float_dtype_spec(const std::string& doc);
/// An optional dtype as the value of such an attribute.
Attribute dtype_value(const std::optional<Dtype>& dtype);

}  // namespace xtape
