/// Batches of matrix products tile by tile in registers: for sizes at which BLAS spends its time on calls and packing.
/// The ideas are those of Goto and van de Geijn (2008, Anatomy of high-performance matrix multiplication), but for one
/// thing: only b is packed, a is read where it lies.
#pragma once

#include "product_gemm.hpp"

namespace xtape {

/// Whether tiles beat BLAS here. Never where registers are narrower than AVX-512's: BLAS picks its kernels when it is
/// loaded, these are compiled in.
bool tiles_suit(const GemmPlan& plan);

/// The plan is one that gemm_can. Every element is summed in an order that depends on the number of terms alone. If the
/// operand that is packed is the fixed one, it is packed once.
template <class T>
MatrixProducts<T> make_tiles(const GemmPlan& plan);
extern template MatrixProducts<float> make_tiles<float>(const GemmPlan&);
extern template MatrixProducts<double> make_tiles<double>(const GemmPlan&);

}  // namespace xtape
