/// Helpers shared by the ops that create arrays.
#pragma once

#include "xtape/op/op.hpp"

namespace xtape {

const Op& zeros_op();  ///< For recognising operands that are all zeros.

/// The attribute "shape" of a call. Throws ShapeError if it has more sizes than a Shape holds.
Shape shape_attribute(const OpCall& call);
Attribute shape_value(const Shape& shape);  ///< A shape as an attribute.

/// An attribute "dtype" whose default is the tape's default dtype. `doc` is the first sentence of its description.
AttributeSpec float_dtype_spec(const std::string& doc);
/// `dtype` as a value of this attribute; 'float', the default, if it is empty.
Attribute dtype_value(const std::optional<Dtype>& dtype);

/// The attribute "shape".
AttributeSpec shape_spec();

}  // namespace xtape
