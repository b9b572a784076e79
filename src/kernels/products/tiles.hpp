/// Batches of matrix products in register tiles. After Goto and van de Geijn (2008, Anatomy of high-performance matrix
/// multiplication), except that a is read in place where it can be.
#pragma once

#include <algorithm>

#include "products/gemm.hpp"

namespace xtape {

/// Whether tiles are faster than BLAS. Never in the baseline instruction set, whose registers are too few and short.
bool tiles_suit(const GemmPlan& plan);

/// Whether tiles pack operand `which` (0: a, 1: b) of any strides, so that it need not be copied to a dense one before
/// (GemmPlan::gathered).
inline bool gathers(const GemmPlan& plan, std::size_t which) {
  constexpr std::int64_t most = 1 << 20;  // lines and terms, whose places are kept in tables
  return which == (columns_run(plan) ? 1U : 0U) && !plan.narrow[which] && std::max({plan.m, plan.n, plan.k}) <= most &&
         tiles_suit(plan);
}

/// `plan` must satisfy gemm_can. Gives nothing in the baseline instruction set. The order in which the terms of an
/// element are summed depends on their number only. If the packed operand is the fixed one, it is packed once, by
/// `prepare`.
template <class T>
MatrixProducts<T> make_tiles(const GemmPlan& plan);
extern template MatrixProducts<float> make_tiles<float>(const GemmPlan&);
extern template MatrixProducts<double> make_tiles<double>(const GemmPlan&);

/// The same with both operands rounded to bfloat16 while they are packed, and sums in float32. For processors with
/// AVX512-BF16.
bool bfloat16_tiles_suit(const GemmPlan& plan);
MatrixProducts<float> make_bfloat16_tiles(const GemmPlan& plan);

}  // namespace xtape
