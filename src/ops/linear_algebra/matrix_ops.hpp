/// Shared helpers of the ops of linear algebra.
#pragma once

#include "xtape/op/op.hpp"

namespace xtape {

/// Returns the matrices with swapped rows and columns, as a view.
Var matrix_transpose(const Var& x);
/// Returns the symmetric part x / 2 + xᵀ / 2. If a function reads only the symmetric part of a matrix, `symmetric`
/// converts the gradient of the symmetric part to the gradient of the matrix.
Var symmetric(const Var& x);
/// Returns the axes before the last two. Throws ShapeError if the array has fewer than two axes, or if `square` is true
/// and the last two axes differ in size. The error names the array `what`.
Shape batch_of(const Shape& shape, const char* what, bool square);
/// Returns `batch` with further axes appended.
Shape joined(Shape batch, std::initializer_list<std::int64_t> more);
/// Returns which of the singular values s of a are larger than rtol times the largest one. rtol means the same as in
/// `pinv`.
Var significant(const Var& s, const Var& a, double rtol);
/// Returns the attribute "check".
AttributeSpec check_attribute(const char* refused);

}  // namespace xtape
