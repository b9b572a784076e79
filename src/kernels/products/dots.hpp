/// Products of few lines with long sums over contiguous terms in both operands. An example is the gradient of a
/// convolution's weight, which sums over all positions of all images. Registers hold terms, so that neither operand is
/// packed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/products/axes.hpp"
#include "kernels/products/product.hpp"

namespace xtape {

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
