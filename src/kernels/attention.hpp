/// Whole attention, block by block: the array of all scores (queries x keys, for every head) never stands in memory.
/// After Dao, Fu, Ermon, Rudra and Ré (2022, FlashAttention), with blocks of queries alone: a processor's cache holds
/// the scores of some queries for all keys. Keys that a mask hides from all queries of a block are not looked at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "loops.hpp"
#include "philox.hpp"

namespace xtape {

struct AttentionPlan {
  Dtype dtype = Dtype::float32;
  std::int64_t queries = 1, keys = 1;
  std::int64_t width = 1, value_width = 1;  ///< Of a query or key; of a value and of the output.

  /// A matrix for each head of each batch entry: its step from query to query or key to key, and from number to number.
  struct Matrix {
    std::int64_t row = 0, column = 0;
  };
  Matrix q, k, v, y;
  Matrix mask;                  ///< Queries by keys; steps of 0 where the mask repeats.
  Matrix dq, dk, dv;            ///< For the gradient alone.
  std::int64_t places_row = 0;  ///< From query to query in the dense array of scores, whose elements number the draws.
  /// The heads of all batch entries: strides of q, k, v, y (or dy), mask, the array of scores, dq, dk, dv.
  Loops<9> heads;

  double scale = 1;       ///< What scores are multiplied by.
  double rate = 0;        ///< Of the dropout of the weights; 0: none.
  std::uint64_t key = 0;  ///< Of the stream of its draws.
  int threads = 1;
};

/// y = dropout(softmax(masked_fill(scale * q k', mask, -inf))) v. A query that sees no key gets zeros.
struct PlannedAttention {
  std::function<void(const void* q, const void* k, const void* v, const bool* mask, void* y, void* scratch,
                     std::uint64_t step)>
      run;
  std::size_t scratch_bytes = 0;  ///< `scratch` must be 64-byte aligned.
};
PlannedAttention make_attention(const AttentionPlan& plan);

/// Its gradients, the weights computed again.
struct PlannedAttentionGrad {
  std::function<void(const void* q, const void* k, const void* v, const bool* mask, const void* dy, void* dq, void* dk,
                     void* dv, void* scratch, std::uint64_t step)>
      run;
  std::size_t scratch_bytes = 0;
};
PlannedAttentionGrad make_attention_grad(const AttentionPlan& plan);

}  // namespace xtape
