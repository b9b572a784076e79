/// The cross-entropy of logits that are a matrix product, together with its gradients, without an array of all logits:
/// they are computed for some rows at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "cross_entropy.hpp"
#include "xtape/array.hpp"
#include "xtape/precision.hpp"

namespace xtape {

/// logits[rows, classes] = x[rows, terms] * weight + bias[classes]. All arrays are dense.
struct LogitsProduct {
  CrossEntropy loss;  ///< The loss of these logits.
  std::int64_t terms = 0;
  bool classes_first = true;  ///< The weight is [classes, terms]; if false, [terms, classes].
  bool biased = false;
  Precision precision = Precision::float32;  ///< Of the products.
  int threads = 1;
};

/// The number of rows whose logits are computed at a time. With fewer, the products of a block would take longer to
/// read the weight than to multiply by it.
inline std::int64_t rows_at_once(std::int64_t classes) {
  constexpr std::int64_t least_rows = 512;
  constexpr std::int64_t logits_at_once = 4 << 20;  // the number of logits of a block, if rows are short
  constexpr std::int64_t row_step = 256;            // the rows that the sum for the weight's gradient takes at a time
  return std::max(least_rows, logits_at_once / std::max<std::int64_t>(1, classes) / row_step * row_step);
}

/// The arrays of one run. `bias` and `dbias` are not used without a bias.
struct LogitsArrays {
  const void *x, *weight, *bias, *targets;
  void* sum;                   ///< The sum of the rows' losses.
  std::int64_t* count;         ///< The number of rows that are not ignored.
  void *dx, *dweight, *dbias;  ///< The gradients of the sum.
};

/// Equal calls give equal bits for any number of threads. `run` throws as check_targets does.
struct PlannedProductCrossEntropy {
  std::function<void(const LogitsArrays& arrays, void* scratch)> run;
  std::size_t scratch_bytes = 0;
};
/// `dtype` is that of the arrays, `targets` that of the targets: int32 or int64.
PlannedProductCrossEntropy make_product_cross_entropy(const LogitsProduct& product, Dtype dtype, Dtype targets);

}  // namespace xtape
