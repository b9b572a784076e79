/// Products of few lines whose sums are long and run in both operands: such as the gradient of a convolution's weight,
/// which sums over all places of all images. Registers hold terms, so that neither operand is packed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "products/axes.hpp"
#include "products/product.hpp"

namespace xtape {

/// c[i, j] = the sum over all runs of a[i] * b[j], `length` terms each, which lie next to each other in a and b.
struct DotsPlan {
  std::array<std::vector<std::int64_t>, 2> lines;   ///< Where the lines of a and of b begin.
  std::array<std::vector<std::int64_t>, 2> places;  ///< The places of both lines in c: element [i, j] is at their sum.
  std::array<std::vector<std::int64_t>, 2> runs;    ///< In a and in b, from the beginning of a line.
  std::int64_t length = 0;
  bool swapped = false;  ///< a is the second operand of the product.
  bool accumulate = false;
  int threads = 1;
};

/// The plan, if the product has this form and no other way is faster.
std::optional<DotsPlan> dots_of(const Product& product, const std::vector<Axis>& axes);

template <class T>
PlannedProduct make_dots(DotsPlan plan);
extern template PlannedProduct make_dots<float>(DotsPlan);

}  // namespace xtape
