/// Batches of matrix products on BLAS. Each BLAS call uses one thread; this file distributes the calls over threads.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "kernels/elements/loops.hpp"
#include "kernels/products/product.hpp"

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
  int fixed = -1;  ///< An operand (0: a, 1: b) that stays the same over many runs; -1: neither.
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
};

/// Returns a key of the prepared form of the fixed operand. The key contains the sizes, strides and dtype of this
/// operand, but not the implementation. The numbers of rows or columns of the other operand have no influence.
std::string fixed_form(const GemmPlan& plan);

/// Returns whether BLAS can compute the plan. The caller ensures that no operand is narrow (GemmPlan::narrow). BLAS
/// needs matrices with one unit stride and a leading dimension of at least the row length, and sizes and strides that
/// fit int.
bool gemm_can(const GemmPlan& plan);

/// Whether c is row-major: the column stride of c is 1.
bool columns_run(const GemmPlan& plan);

/// Returns the transposed product, with a and b exchanged.
GemmPlan with_sides_swapped(GemmPlan plan);

/// Returns the same product with row-major c, transposed if necessary.
GemmPlan with_columns_running(const GemmPlan& plan);

/// Estimates the nanoseconds on one thread, to choose between plans.
double gemm_cost(const GemmPlan& plan);

/// Returns a function that computes the plan with BLAS. `plan` must satisfy gemm_can.
template <class T>
std::function<void(const T* a, const T* b, T* c)> make_gemm(const GemmPlan& plan);
extern template std::function<void(const float*, const float*, float*)> make_gemm<float>(const GemmPlan&);
extern template std::function<void(const double*, const double*, double*)> make_gemm<double>(const GemmPlan&);

}  // namespace xtape
