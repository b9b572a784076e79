/// What the ops of linear algebra share.
#pragma once

#include "xtape/op/op.hpp"

namespace xtape {

/// The matrices with rows and columns exchanged: a view.
Var matrix_transpose(const Var& x);
/// x / 2 + xᵀ / 2, the gradient of a matrix that stands for this mean.
Var symmetric(const Var& x);
/// The axes before the last two. Throws ShapeError, naming `what`, unless the array has matrices, which are square if
/// `square`.
Shape batch_of(const Shape& shape, const char* what, bool square);
/// `batch` with further axes.
Shape joined(Shape batch, std::initializer_list<std::int64_t> more);
/// Which of the singular values s of a are larger than rtol times the largest; rtol as in `pinv`.
Var significant(const Var& s, const Var& a, double rtol);
/// For Lowering::kernel.
Kernel linear_algebra_kernel(const KernelCall& call);
/// The attribute "check".
AttributeSpec check_attribute(const char* refused);

}  // namespace xtape
