/// Batches of matrix products in register tiles, for sizes at which BLAS spends its time on calls and packing. After
/// Goto and van de Geijn (2008, Anatomy of high-performance matrix multiplication), except that only b is packed; a is
/// read in place.
#pragma once

#include "product_gemm.hpp"

namespace xtape {

/// Whether tiles are faster than BLAS. Never in the baseline instruction set, whose registers are too few and short.
bool tiles_suit(const GemmPlan& plan);

/// `plan` must satisfy gemm_can. The order in which the terms of an element are summed depends on their number only. If
/// the packed operand is the fixed one, it is packed once, by `prepare`.
template <class T>
MatrixProducts<T> make_tiles(const GemmPlan& plan);
extern template MatrixProducts<float> make_tiles<float>(const GemmPlan&);
extern template MatrixProducts<double> make_tiles<double>(const GemmPlan&);

}  // namespace xtape
