#include "kernels/products/gemm.hpp"

#include <cblas.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/memory/lengths.hpp"
#include "base/threads/threads.hpp"
#include "kernels/products/blas_core.hpp"

namespace xtape {

namespace {
/// Returns the row stride (leading dimension) of a matrix with contiguous rows. Returns nullopt if the matrix has no
/// contiguous rows, or if the stride does not fit int.
std::optional<int> leading(std::int64_t rows, std::int64_t columns, std::int64_t row_stride,
                           std::int64_t column_stride) {
  if (columns > 1 && column_stride != 1) return std::nullopt;
  const std::int64_t step = rows == 1 ? columns : row_stride;
  if (step < columns || step > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(step);
}

/// A matrix in the form that BLAS requires.
struct Matrix {
  bool rows_run = false;  ///< True: the matrix is row-major; false: column-major.
  int step = 0;
};
std::optional<Matrix> matrix_of(std::int64_t rows, std::int64_t columns, std::int64_t row_stride,
                                std::int64_t column_stride) {
  if (const auto step = leading(rows, columns, row_stride, column_stride)) return Matrix{true, *step};
  if (const auto step = leading(columns, rows, column_stride, row_stride)) return Matrix{false, *step};
  return std::nullopt;
}
std::optional<Matrix> a_of(const GemmPlan& p) {
  return matrix_of(p.m, p.k, p.m_strides[0], p.k_strides[0]);
}
std::optional<Matrix> b_of(const GemmPlan& p) {
  return matrix_of(p.k, p.n, p.k_strides[1], p.n_strides[1]);
}
std::optional<Matrix> c_of(const GemmPlan& p) {
  return matrix_of(p.m, p.n, p.m_strides[2], p.n_strides[2]);
}

/// The division of the result into pieces. It depends only on the shape, never on the number of threads, because BLAS
/// may use a different code path for pieces of another shape, which changes the last bits.
struct Partition {
  bool along_n = true;
  std::int64_t width = 0;
  std::int64_t count = 1;
};
Partition partition_of(const GemmPlan& plan) {
  constexpr double worth_a_piece = 1.6e7;    // multiply-adds
  constexpr std::int64_t most_pieces = 16;   // pieces of all products together
  constexpr std::int64_t worth_a_cut = 128;  // BLAS spends most of the time of narrower pieces on packing
  constexpr std::int64_t suits_kernel = 16;
  Partition pieces;
  pieces.along_n = plan.n >= plan.m;  // BLAS packs the other operand for each piece, so divide the longer side
  const std::int64_t length = pieces.along_n ? plan.n : plan.m;
  const double work = static_cast<double>(plan.m) * static_cast<double>(plan.n) * static_cast<double>(plan.k) *
                      static_cast<double>(plan.sums.count());
  const std::int64_t most = std::min(most_pieces / plan.outer.count(), std::max<std::int64_t>(2, length / worth_a_cut));
  const std::int64_t wanted =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(work / worth_a_piece), 1, std::max<std::int64_t>(1, most));
  const std::int64_t even = wanted > 1 ? wanted / 2 * 2 : 1;  // an odd number would leave one of two threads idle
  pieces.width = round_up(ceiling(length, even), suits_kernel);
  pieces.count = ceiling(length, pieces.width);
  return pieces;
}

void gemm(CBLAS_ORDER order, CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, const float* a, int lda,
          const float* b, int ldb, float beta, float* c, int ldc) {
  cblas_sgemm(order, ta, tb, m, n, k, 1.0f, a, lda, b, ldb, beta, c, ldc);
}
void gemm(CBLAS_ORDER order, CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, const double* a, int lda,
          const double* b, int ldb, double beta, double* c, int ldc) {
  cblas_dgemm(order, ta, tb, m, n, k, 1.0, a, lda, b, ldb, beta, c, ldc);
}
}  // namespace

bool gemm_can(const GemmPlan& plan) {
  return a_of(plan) && b_of(plan) && c_of(plan) &&
         std::max({plan.m, plan.n, plan.k}) <= std::numeric_limits<int>::max();
}

bool columns_run(const GemmPlan& plan) {
  return plan.n_strides[2] == 1 || (plan.n == 1 && plan.m_strides[2] != 1);
}

GemmPlan with_sides_swapped(GemmPlan plan) {
  std::swap(plan.m, plan.n);
  std::swap(plan.m_strides, plan.n_strides);
  for (auto* strides : {&plan.m_strides, &plan.n_strides, &plan.k_strides}) std::swap((*strides)[0], (*strides)[1]);
  std::swap(plan.outer.strides[0], plan.outer.strides[1]);
  std::swap(plan.sums.strides[0], plan.sums.strides[1]);
  std::swap(plan.offsets[0], plan.offsets[1]);
  std::swap(plan.narrow[0], plan.narrow[1]);
  if (plan.fixed >= 0) plan.fixed = 1 - plan.fixed;
  if (plan.gathered >= 0) plan.gathered = 1 - plan.gathered;
  return plan;
}

GemmPlan with_columns_running(const GemmPlan& plan) {
  return columns_run(plan) ? plan : with_sides_swapped(plan);
}

std::string fixed_form(const GemmPlan& given) {
  const GemmPlan plan = with_columns_running(given);  // the form that implementations receive
  const auto side = static_cast<std::size_t>(plan.fixed);
  const auto& lines = side == 0 ? plan.m_strides : plan.n_strides;
  std::string form = side == 0 ? "left" : "right";
  const auto add = [&](std::int64_t number) { form += ' ' + std::to_string(number); };
  for (const std::int64_t number :
       {side == 0 ? plan.m : plan.n, plan.k, lines[side], plan.k_strides[side], plan.offsets[side]})
    add(number);
  if (plan.narrow[side]) form += name_of(*plan.narrow[side]);
  const auto add_loops = [&](const char* name, const auto& loops) {
    form += name;
    for (std::size_t axis = 0; axis < loops.rank(); ++axis) {
      add(loops.sizes[axis]);
      add(loops.strides[side][axis]);
    }
  };
  add_loops(" of", plan.outer);
  add_loops(" sums", plan.sums);
  return form;
}

double gemm_cost(const GemmPlan& plan) {
  const auto m = static_cast<double>(plan.m), n = static_cast<double>(plan.n), k = static_cast<double>(plan.k);
  const auto calls = static_cast<double>(plan.outer.count()) * static_cast<double>(plan.sums.count());
  constexpr double per_call = 80, per_multiply_add = 0.01;
  return calls * (per_call + per_multiply_add * (m + 8) * (n + 8) * (k + 8));
}

template <class T>
std::function<void(const T*, const T*, T*)> make_gemm(const GemmPlan& plan) {
  const Matrix a_matrix = *a_of(plan), b_matrix = *b_of(plan), c_matrix = *c_of(plan);
  // The call uses the storage order of the result. An operand of the other order is passed as transposed.
  const CBLAS_ORDER order = c_matrix.rows_run ? CblasRowMajor : CblasColMajor;
  const auto transposed = [&](const Matrix& matrix) {
    return matrix.rows_run == c_matrix.rows_run ? CblasNoTrans : CblasTrans;
  };
  const CBLAS_TRANSPOSE ta = transposed(a_matrix), tb = transposed(b_matrix);
  const Partition pieces = partition_of(plan);
  reserve_blas();
  return [plan, order, ta, tb, pieces, lda = a_matrix.step, ldb = b_matrix.step, ldc = c_matrix.step](
             const T* a, const T* b, T* c) {
    const std::int64_t count = plan.outer.count() * pieces.count;
    parallel_for(plan.threads, count, 1, [&](std::int64_t begin, std::int64_t finish) {
      for (std::int64_t task = begin; task < finish; ++task) {
        auto at = plan.outer.offsets(task / pieces.count, plan.outer.rank());
        const std::int64_t first = task % pieces.count * pieces.width;
        const std::int64_t length = std::min(pieces.width, (pieces.along_n ? plan.n : plan.m) - first);
        for (std::size_t i = 0; i < 3; ++i)
          at[i] += plan.offsets[i] + first * (pieces.along_n ? plan.n_strides : plan.m_strides)[i];
        const int m = static_cast<int>(pieces.along_n ? plan.m : length);
        const int n = static_cast<int>(pieces.along_n ? length : plan.n);
        for (std::int64_t s = 0; s < plan.sums.count(); ++s) {
          const auto [sum_a, sum_b] = plan.sums.offsets(s, plan.sums.rank());
          gemm(order, ta, tb, m, n, static_cast<int>(plan.k), a + at[0] + sum_a, lda, b + at[1] + sum_b, ldb,
               plan.accumulate || s > 0 ? T{1} : T{0}, c + at[2], ldc);
        }
      }
    });
  };
}
template std::function<void(const float*, const float*, float*)> make_gemm<float>(const GemmPlan&);
template std::function<void(const double*, const double*, double*)> make_gemm<double>(const GemmPlan&);

}  // namespace xtape
