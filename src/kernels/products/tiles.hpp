/// Batches of matrix products in register tiles. The method follows Goto and van de Geijn (2008, Anatomy of
/// high-performance matrix multiplication), but reads a in place if possible.
#pragma once

#include <algorithm>

#include "kernels/products/gemm.hpp"

namespace xtape {

/// Whether tiles are faster than BLAS. Never true in the baseline instruction set, whose registers are too few and
/// short.
bool tiles_suit(const GemmPlan& plan);

/// Whether tiles can gather operand `which` (0: a, 1: b) with any strides. The operand then needs no dense copy
/// (GemmPlan::gathered).
inline bool gathers(const GemmPlan& plan, std::size_t which) {
  constexpr std::int64_t most = 1 << 20;  // lines and terms, whose positions are stored in tables
  return which == (columns_run(plan) ? 1U : 0U) && !plan.narrow[which] && std::max({plan.m, plan.n, plan.k}) <= most &&
         tiles_suit(plan);
}

/// Returns the matrix products of the plan. In the baseline instruction set, returns empty functions. `plan` must
/// satisfy gemm_can. The order in which the terms of an element are summed depends only on their number. If the packed
/// operand is the fixed operand, `prepare` packs it once.
template <class T>
MatrixProducts<T> make_tiles(const GemmPlan& plan);
extern template MatrixProducts<float> make_tiles<float>(const GemmPlan&);
extern template MatrixProducts<double> make_tiles<double>(const GemmPlan&);

/// Like tiles_suit and make_tiles, but both operands are rounded to bfloat16 during packing, and sums are float32. Only
/// for processors with AVX512-BF16.
bool bfloat16_tiles_suit(const GemmPlan& plan);
MatrixProducts<float> make_bfloat16_tiles(const GemmPlan& plan);

}  // namespace xtape
