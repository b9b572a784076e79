/// Batches of matrix products tile by tile in registers: for sizes at which BLAS spends its time on calls and packing.
/// The ideas are those of Goto and van de Geijn (2008, Anatomy of high-performance matrix multiplication), but for one
/// thing: only b is packed, a is read where it lies.
#pragma once

#include <functional>

#include "product_gemm.hpp"

namespace xtape {

/// Whether tiles beat BLAS here. Never where registers are narrower than AVX-512's: BLAS picks its kernels when it is
/// loaded, these are compiled in.
bool tiles_suit(const GemmPlan& plan);

/// What the packed operand needs; scratch is 64-byte aligned.
std::size_t tiles_scratch_bytes(const GemmPlan& plan, std::size_t element_bytes);

/// The plan is one that gemm_can. Every element is summed in an order that depends on the number of terms alone.
template <class T>
std::function<void(const T* a, const T* b, T* c, void* scratch)> make_tiles(const GemmPlan& plan);
extern template std::function<void(const float*, const float*, float*, void*)> make_tiles<float>(const GemmPlan&);
extern template std::function<void(const double*, const double*, double*, void*)> make_tiles<double>(const GemmPlan&);

}  // namespace xtape
