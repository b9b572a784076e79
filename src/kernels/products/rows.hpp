/// Products of few rows and a large matrix, such as one decoding step with a weight. Nearly all their time goes into
/// reading the matrix, so it is read once, in memory order, and never packed.
#pragma once

#include "products/gemm.hpp"

namespace xtape {

/// Whether one operand has at most 8 rows (without tiles 32, if the other exceeds the second-level cache) and is
/// not narrow, and the other is a matrix that can be read in place: either the summed terms are contiguous in both
/// operands, or the rows of the matrix and of the result are contiguous.
bool rows_suit(const GemmPlan& plan);

/// `plan` must satisfy rows_suit. The bits of a row do not depend on the other rows or on their number.
template <class T>
MatrixProducts<T> make_rows(const GemmPlan& plan);
extern template MatrixProducts<float> make_rows<float>(const GemmPlan&);
extern template MatrixProducts<double> make_rows<double>(const GemmPlan&);

}  // namespace xtape
