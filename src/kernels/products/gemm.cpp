#include "kernels/products/gemm.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace xtape {

namespace {
/// The most rows, columns and terms, whose tables must fit memory.
constexpr std::int64_t most_lines = std::numeric_limits<std::int32_t>::max();

/// Whether a matrix is dense by rows: its columns are adjacent, and its rows do not overlap.
bool rows_run(std::int64_t rows, std::int64_t columns, std::int64_t row_stride, std::int64_t column_stride) {
  const std::int64_t step = rows == 1 ? columns : row_stride;
  return (columns == 1 || column_stride == 1) && step >= columns && step <= most_lines;
}
}  // namespace

bool gemm_can(const GemmPlan& p) {
  const auto dense = [](std::int64_t rows, std::int64_t columns, std::int64_t row_stride, std::int64_t column_stride) {
    return rows_run(rows, columns, row_stride, column_stride) || rows_run(columns, rows, column_stride, row_stride);
  };
  return dense(p.m, p.k, p.m_strides[0], p.k_strides[0]) && dense(p.k, p.n, p.k_strides[1], p.n_strides[1]) &&
         dense(p.m, p.n, p.m_strides[2], p.n_strides[2]) && std::max({p.m, p.n, p.k}) <= most_lines;
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
  if (plan.k == 1) return std::numeric_limits<double>::infinity();  // loops multiply without packing and adding
  constexpr double per_call = 80, per_multiply_add = 0.01;
  return calls * (per_call + per_multiply_add * (m + 8) * (n + 8) * (k + 8));
}

}  // namespace xtape
