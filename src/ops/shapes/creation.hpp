/// Shared helpers of the ops that create arrays.
#pragma once

#include "xtape/op/op.hpp"

namespace xtape {

const Op& zeros_op();  ///< To recognise operands that are all zeros.

/// Returns the attribute "shape" of a call. Throws ShapeError if it has more sizes than a Shape can hold.
Shape shape_attribute(const OpCall& call);
/// Returns the type that the attributes "dtype" and "shape" describe. Throws DtypeError if random numbers cannot have
/// this dtype.
ValueType drawn_type(const OpCall& call);
Attribute shape_value(const Shape& shape);  ///< A shape as an attribute.

/// Returns an attribute "dtype" whose default is the tape's default dtype. `doc` is the first sentence of its
/// description.
AttributeSpec float_dtype_spec(const std::string& doc);
/// Returns `dtype` as a value of this attribute, or 'float', the default, if `dtype` is empty.
Attribute dtype_value(const std::optional<Dtype>& dtype);

/// The attribute "shape".
AttributeSpec shape_spec();

}  // namespace xtape
