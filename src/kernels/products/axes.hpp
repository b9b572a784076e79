/// Converts the axis labels of a product to plans that compute it.
#pragma once

#include <array>
#include <limits>
#include <optional>
#include <vector>

#include "kernels/products/gemm.hpp"
#include "kernels/products/product.hpp"
#include "kernels/products/product_loops.hpp"

namespace xtape {

/// The role of an axis in a matrix product. It depends on the arrays with this axis: a and c (m), b and c (n), a and b
/// (k, summed), or all three (batch).
enum class Role { batch, m, n, k };

struct Axis {
  char letter = 0;
  std::int64_t size = 1;
  std::array<std::int64_t, 3> strides{};  // in a, b, c; 0 in an array without the axis
  Role role = Role::batch;
};

/// Returns the axes of a product except those of size 1. A label that appears twice in an operand has the stride of the
/// diagonal.
std::vector<Axis> axes_of(const Product& product);

/// A way to compute the product with matrix products: the arrays to pack (copy to dense layouts), and the plan.
struct GemmChoice {
  std::array<bool, 3> packed{};
  std::array<Layout, 3> from, to;  // layouts of the packing copies; for c, from the computed array to the result
  GemmPlan plan;
  double cost = std::numeric_limits<double>::infinity();
};

/// Returns the cheapest choice. Its cost is infinite if no choice is possible.
GemmChoice best_gemm(const Product& product, const std::vector<Axis>& axes);

/// Returns the plan for few rows times a matrix that is read in place, if the product has this form.
std::optional<GemmPlan> rows_of(const Product& product, const std::vector<Axis>& axes);

/// Returns the plan for plain loops. Every product has this plan.
LoopsPlan loops_of(const Product& product, const std::vector<Axis>& axes);

}  // namespace xtape
