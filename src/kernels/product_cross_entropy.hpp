/// The cross-entropy of logits that are a product, and its gradients with it, without an array of all the logits: they
/// are made for some rows at a time.
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
  CrossEntropy loss;  ///< Of those logits.
  std::int64_t terms = 0;
  bool classes_first = true;  ///< The weight is [classes, terms], else [terms, classes].
  bool biased = false;
  int threads = 1;
};

/// How many rows are taken at a time of logits of that many classes.
std::int64_t rows_at_once(std::int64_t classes);

/// sum = the sum of the rows' losses, count = how many rows were not ignored, and the gradients of that sum for x,
/// weight and bias. Equal calls give equal bits for any number of threads.
template <class T>
class ProductCrossEntropy {
 public:
  explicit ProductCrossEntropy(const LogitsProduct& product);
  std::size_t scratch_bytes() const { return places_.end; }

  /// `bias` and `dbias` are not touched where there is none. Throws as check_targets does.
  template <class Target>
  void run(const T* x, const T* weight, const T* bias, const Target* targets, T* sum, std::int64_t* count, T* dx,
           T* dweight, T* dbias, void* scratch) const;

 private:
  struct Block {
    std::int64_t first = 0;
    CrossEntropy loss;  ///< Of its rows.
    PlannedProduct logits, dx, dweight;
    Reducer dbias;
  };
  /// Where in scratch, in bytes, behind the logits of a block: each row's loss and log of the sum, each block's share
  /// of dbias, what the products need.
  struct Places {
    std::size_t losses, logsumexp, dbias, working, end;
  };

  LogitsProduct given_;
  std::vector<Block> blocks_;
  Reducer dbias_;  ///< The sum of the blocks' shares.
  Places places_{};
};

}  // namespace xtape
