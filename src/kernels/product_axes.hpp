/// From the letters of a product to plans of how to compute it.
#pragma once

#include <array>
#include <limits>
#include <optional>
#include <vector>

#include "product.hpp"
#include "product_gemm.hpp"
#include "product_loops.hpp"

namespace xtape {

/// Where an axis stands decides what it is to a matrix product.
enum class Role { batch, m, n, k };

struct Axis {
  char letter = 0;
  std::int64_t size = 1;
  std::array<std::int64_t, 3> strides{};  // of a, b, c; 0 where it does not stand
  Role role = Role::batch;
};

/// The axes of a product, those of size 1 left out. A letter that stands twice in an operand steps along its diagonal.
std::vector<Axis> axes_of(const Product& product);

/// A way to compute the product by matrix products: which arrays are rearranged first, and the products after that.
struct GemmChoice {
  std::array<bool, 3> packed{};
  std::array<Layout, 3> from, to;  // of the copies that pack; for c: from what is computed to the result
  GemmPlan plan;
  double cost = std::numeric_limits<double>::infinity();
};

/// The cheapest such way; its cost is infinite where there is none.
GemmChoice best_gemm(const Product& product, const std::vector<Axis>& axes);

/// Few rows by a matrix that is read where it lies, if it is such a product.
std::optional<GemmPlan> rows_of(const Product& product, const std::vector<Axis>& axes);

/// Any product, element by element.
LoopsPlan loops_of(const Product& product, const std::vector<Axis>& axes);

}  // namespace xtape
