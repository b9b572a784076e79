/// Converts the axis labels of a product to plans that compute it.
#pragma once

#include <array>
#include <cstdint>
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

/// Returns the choice for precisions that round to bytes, if one operand is a matrix in blocks that make_bytes can read
/// in place. It copies the other operand or the result if their axes do not merge.
std::optional<GemmChoice> choice_for_bytes(const Product& product, const std::vector<Axis>& axes);

/// Returns the plan for plain loops. Every product has this plan.
LoopsPlan loops_of(const Product& product, const std::vector<Axis>& axes);

// Products of few lines with long sums over contiguous terms in both operands. An example is the gradient of a
// convolution's weight, which sums over all positions of all images. Registers hold terms, so that neither operand is
// packed.

/// c[i, j] = the sum over all runs of a[i] * b[j]. A run has `length` terms, which are adjacent in a and in b.
struct DotsPlan {
  std::array<std::vector<std::int64_t>, 2> lines;   ///< The offsets of the lines in a and in b.
  std::array<std::vector<std::int64_t>, 2> places;  ///< The offsets of both lines in c. Element [i, j] is at their sum.
  /// The offsets of the runs in a and in b, from the beginning of a line.
  std::array<std::vector<std::int64_t>, 2> runs;
  std::int64_t length = 0;
  bool swapped = false;  ///< Whether a is the second operand of the product.
  bool accumulate = false;
  int threads = 1;
};

/// Returns the plan if the product has this form and no other implementation is faster.
std::optional<DotsPlan> dots_of(const Product& product, const std::vector<Axis>& axes);

template <class T>
PlannedProduct make_dots(DotsPlan plan);
extern template PlannedProduct make_dots<float>(DotsPlan);

}  // namespace xtape
