/// Batches of matrix products: few rows times a matrix, tiles in registers, and the matrix unit.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>

#include "kernels/elements/loops.hpp"
#include "kernels/products/product.hpp"
#include "xtape/precision.hpp"

namespace xtape {

/// Strides of one matrix product and of its outer loops, in elements. Index 0 is for a, index 1 for b, and index 2 for
/// c.
struct GemmPlan {
  std::int64_t m = 1, n = 1, k = 1;
  std::array<std::int64_t, 3> m_strides{}, n_strides{}, k_strides{};
  Loops<3> outer;  ///< Independent products.
  Loops<2> sums;   ///< Products that are added one after another to one result, with strides of a and b.
  std::array<std::int64_t, 3> offsets{};
  bool accumulate = false;
  int threads = 1;
  Narrow narrow = {};  ///< The dtypes of a and b if they are narrow.
  int fixed = -1;      ///< An operand (0: a, 1: b) that stays the same over many runs; -1: neither.
  /// If >= 0, the operand (0: a, 1: b) that the kernel gathers instead of packing. Its offsets and strides above
  /// describe the packed layout. The kernel reads the elements through `gathered_from`.
  int gathered = -1;
  Layout gathered_from = {};
};

/// Matrix products of a plan, ready to run. a and b hold elements of T, or of the types in GemmPlan::narrow. `scratch`
/// and `prepared` must be 64-byte aligned.
template <class T>
struct MatrixProducts {
  std::function<void(const void* a, const void* b, T* c, void* scratch, const void* prepared)> run;
  std::size_t scratch_bytes = 0;
  /// Converts the fixed operand to the layout for the runs, in `prepared`, which has `prepared_bytes` bytes. Empty if
  /// no operand is fixed or preparing does not pay off. The runs then read the operand itself and ignore `prepared`.
  std::function<void(const void* fixed, void* prepared)> prepare = {};
  std::size_t prepared_bytes = 0;
  /// Computes the rows [begin, end) of c from the prepared b. Empty if the plan has several products, or if the runs
  /// need scratch memory or no prepared b.
  std::function<void(const void* a, T* c, const void* prepared, std::int64_t begin, std::int64_t end)> rows = {};
};

/// Returns a key of the prepared form of the fixed operand. The key contains the sizes, strides and dtype of this
/// operand, but not the implementation. The numbers of rows or columns of the other operand have no influence.
std::string fixed_form(const GemmPlan& plan);

/// Returns whether a, b and c are dense matrices of the plan, by rows or by columns: one stride is 1, and the other at
/// least the length of the lines with this stride.
bool gemm_can(const GemmPlan& plan);

/// Whether c is row-major: its columns are adjacent, or it is one column whose rows are not adjacent.
bool columns_run(const GemmPlan& plan);

/// Returns the transposed product, with a and b exchanged.
GemmPlan with_sides_swapped(GemmPlan plan);

/// Returns the same product with row-major c, transposed if necessary.
GemmPlan with_columns_running(const GemmPlan& plan);

/// Estimates the nanoseconds on one thread, to choose between plans.
double gemm_cost(const GemmPlan& plan);

/// Prefetches the cache line `bytes` after an address. A place beyond the end of the matrix is harmless, but is no
/// pointer.
inline void will_read(const void* address, std::int64_t bytes) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  __builtin_prefetch(
      reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(address) + static_cast<std::uintptr_t>(bytes)), 0,
      2);
}
// Products of few rows and a large matrix, such as one decoding step with a weight. Nearly all their time goes into
// reading the matrix. The matrix is therefore read once, in memory order, and never packed.

/// Returns whether one operand has at most 8 rows and the other is a matrix that can be read in place. The operand with
/// few rows must not be narrow (GemmPlan::narrow). For reading in place, the summed terms must be contiguous in both
/// operands, or the rows of the matrix and of the result must be contiguous.
bool rows_suit(const GemmPlan& plan);

/// `plan` must satisfy rows_suit. The bits of a row do not depend on the other rows or on the number of rows.
template <class T>
MatrixProducts<T> make_rows(const GemmPlan& plan);
extern template MatrixProducts<float> make_rows<float>(const GemmPlan&);
extern template MatrixProducts<double> make_rows<double>(const GemmPlan&);

/// Whether the terms of each column of operand 1 are whole blocks, if it has blocks.
bool columns_have_blocks(const GemmPlan& plan);

// Products of float32 rows by a matrix in blocks, for the precisions that round to bytes (byte_products.hpp).

/// Whether one operand is a matrix of which each column is whole blocks, and the other one has floats; with
/// Precision::int8_training and more than 8 rows, also one of which each row is whole blocks. False if the instruction
/// set does not fuse, or is avx512 on a processor without VNNI.
bool bytes_suit(const GemmPlan& plan, Precision precision);
/// `plan` must satisfy bytes_suit. With up to 8 rows, the bits of a row do not depend on the other rows.
MatrixProducts<float> make_bytes(const GemmPlan& plan);

// Batches of matrix products in register tiles. The method follows Goto and van de Geijn (2008, Anatomy of
// high-performance matrix multiplication), but reads a in place if possible.

/// Whether tiles can gather operand `which` (0: a, 1: b) with any strides. The operand then needs no dense copy
/// (GemmPlan::gathered).
inline bool gathers(const GemmPlan& plan, std::size_t which) {
  constexpr std::int64_t most = 1 << 20;                // lines and terms, whose positions are stored in tables
  constexpr std::int64_t few_lines = 4, few_terms = 8;  // too few for a panel to pay off
  return which == (columns_run(plan) ? 1U : 0U) && !plan.narrow[which] && std::max({plan.m, plan.n, plan.k}) <= most &&
         std::min(plan.m, plan.n) >= few_lines && plan.k >= few_terms;
}

/// Returns the matrix products of the plan. `plan` must satisfy gemm_can. The order in which the terms of an element
/// are summed depends only on their number. If the packed operand is the fixed operand, `prepare` packs it once.
template <class T>
MatrixProducts<T> make_tiles(const GemmPlan& plan);
extern template MatrixProducts<float> make_tiles<float>(const GemmPlan&);
extern template MatrixProducts<double> make_tiles<double>(const GemmPlan&);

/// Like make_tiles, but both operands are rounded to bfloat16 during packing, and sums are float32. Only
/// for processors with AVX512-BF16.
bool bfloat16_tiles_suit(const GemmPlan& plan);
MatrixProducts<float> make_bfloat16_tiles(const GemmPlan& plan);

// Batches of float32 matrix products on the matrix unit. amx.hpp describes the method and its accuracy.

/// Whether the machine has the matrix unit and the product is large enough to pay for decomposing the operands into
/// parts.
bool amx_suits(const GemmPlan& plan, Precision precision);

/// Decomposes the operands into three, two or one bfloat16 numbers, for the precisions float32, bf16x3 and bf16. `plan`
/// must satisfy gemm_can. The order in which the terms of an element are summed depends only on their number. A fixed
/// operand is decomposed into parts in advance, unless the parts do not fit the cache. Each part takes 0.5 times the
/// size of the operand.
MatrixProducts<float> make_amx(const GemmPlan& plan, Precision precision);

}  // namespace xtape
