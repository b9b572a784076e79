/// The cross-entropy of logits that are a matrix product, together with its gradients, without an array of all logits:
/// they are computed for some rows at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cross_entropy.hpp"
#include "product.hpp"
#include "reduce.hpp"

namespace xtape {

/// logits[rows, classes] = x[rows, terms] * weight + bias[classes]. All arrays are dense.
struct LogitsProduct {
  CrossEntropy loss;  ///< The loss of these logits.
  std::int64_t terms = 0;
  bool classes_first = true;  ///< The weight is [classes, terms]; if false, [terms, classes].
  bool biased = false;
  int threads = 1;
};

/// The number of rows whose logits are computed at a time.
std::int64_t rows_at_once(std::int64_t classes);

/// sum = the sum of the rows' losses; count = the number of rows that are not ignored; dx, dweight and dbias = the
/// gradients of that sum. Equal calls give equal bits for any number of threads.
template <class T>
class ProductCrossEntropy {
 public:
  explicit ProductCrossEntropy(const LogitsProduct& product);
  std::size_t scratch_bytes() const { return places_.end; }

  /// `bias` and `dbias` are not used without a bias. `scratch` has scratch_bytes() bytes. Throws as check_targets does.
  template <class Target>
  void run(const T* x, const T* weight, const T* bias, const Target* targets, T* sum, std::int64_t* count, T* dx,
           T* dweight, T* dbias, void* scratch) const;

 private:
  struct Block {
    std::int64_t first = 0;
    CrossEntropy loss;  ///< The loss of the block's rows.
    PlannedProduct logits, dx, dweight;
    Reducer dbias;
  };
  /// Byte offsets in scratch, after the logits of a block: the loss and logsumexp of each row, each block's
  /// contribution to dbias, the scratch of the products.
  struct Places {
    std::size_t losses, logsumexp, dbias, working, end;
  };

  LogitsProduct given_;
  std::vector<Block> blocks_;
  Reducer dbias_;  ///< Sums the blocks' contributions.
  Places places_{};
};

}  // namespace xtape
