/// Batches of matrix products on BLAS, one thread a call, shared out by us.
#pragma once

#include <functional>
#include <optional>

#include "loops.hpp"

namespace xtape {

/// Strides of one matrix product and of the loops around it, in elements: [0] of a, [1] of b, [2] of c.
struct GemmPlan {
  std::int64_t m = 1, n = 1, k = 1;
  std::array<std::int64_t, 3> m_strides{}, n_strides{}, k_strides{};
  Loops<3> outer;  ///< Independent products.
  Loops<2> sums;   ///< Products added up one after another into one result; strides of a and b.
  std::array<std::int64_t, 3> offsets{};
  bool accumulate = false;
  int threads = 1;
  int fixed = -1;  ///< An operand (0: a, 1: b) that stays the same over many runs; -1: neither.
};

/// Matrix products of a plan, made ready to run. Scratch is 64-byte aligned, and so is what is prepared.
template <class T>
struct MatrixProducts {
  std::function<void(const T* a, const T* b, T* c, void* scratch, const void* prepared)> run;
  std::size_t scratch_bytes = 0;
  /// Puts the fixed operand into the form that the runs need: `prepared` is `prepared_bytes` of their own. Empty where
  /// none is fixed, or not worth it: the runs then read what they are given as that operand, and `prepared` is unused.
  std::function<void(const T* fixed, void* prepared)> prepare = {};
  std::size_t prepared_bytes = 0;
};

/// Whether BLAS can say it: in each matrix one stride is 1 and the other at least the length of a row.
bool gemm_can(const GemmPlan& plan);

/// Whether the columns of c stand side by side.
bool columns_run(const GemmPlan& plan);

/// The same product, transposed: the two operands change places.
GemmPlan with_sides_swapped(GemmPlan plan);

/// The same product with columns that do stand side by side, transposed if need be.
GemmPlan with_columns_running(const GemmPlan& plan);

/// Nanoseconds on one thread, roughly: to choose between plans.
double gemm_cost(const GemmPlan& plan);

template <class T>
std::function<void(const T* a, const T* b, T* c)> make_gemm(const GemmPlan& plan);
extern template std::function<void(const float*, const float*, float*)> make_gemm<float>(const GemmPlan&);
extern template std::function<void(const double*, const double*, double*)> make_gemm<double>(const GemmPlan&);

}  // namespace xtape
