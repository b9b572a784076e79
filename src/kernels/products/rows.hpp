/// Products of few rows and a large matrix, such as one decoding step with a weight. Nearly all their time goes into
/// reading the matrix. The matrix is therefore read once, in memory order, and never packed.
#pragma once

#include "kernels/products/gemm.hpp"

namespace xtape {

/// Returns whether one operand has at most 8 rows and the other is a matrix that can be read in place. The operand with
/// few rows must not be narrow (GemmPlan::narrow). The limit is 32 instead of 8 rows if tiles do not suit the product
/// and the matrix exceeds the second-level cache. For reading in place, the summed terms must be contiguous in both
/// operands, or the rows of the matrix and of the result must be contiguous.
bool rows_suit(const GemmPlan& plan);

/// `plan` must satisfy rows_suit. The bits of a row do not depend on the other rows or on the number of rows.
template <class T>
MatrixProducts<T> make_rows(const GemmPlan& plan);
extern template MatrixProducts<float> make_rows<float>(const GemmPlan&);
extern template MatrixProducts<double> make_rows<double>(const GemmPlan&);

}  // namespace xtape
