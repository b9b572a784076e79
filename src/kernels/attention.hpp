/// Fused attention, block by block: the array of all scores (queries x keys, for every head) is never in memory. After
/// Dao, Fu, Ermon, Rudra and Ré (2022, FlashAttention), but with blocks of queries only, because a processor's cache
/// holds the scores of some queries for all keys. Trailing keys that are masked for all queries of a block are skipped.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "loops.hpp"
#include "philox.hpp"
#include "xtape/precision.hpp"

namespace xtape {

struct AttentionPlan {
  Dtype dtype = Dtype::float32;  ///< Of the results, and of the operands but those of `narrow`.
  /// Of q, k, v and dy: bfloat16 or int8, if the operand of a float32 attention is stored so.
  std::array<std::optional<Dtype>, 4> narrow = {};
  std::int64_t queries = 1, keys = 1;
  std::int64_t width = 1, value_width = 1;  ///< Of a query or key; of a value and of the output.

  /// The strides of a head's matrix: from query to query or key to key, and from element to element.
  struct Matrix {
    std::int64_t row = 0, column = 0;
  };
  Matrix q, k, v, y;
  Matrix mask;                  ///< [queries, keys]; strides of 0 where the mask broadcasts.
  Matrix dq, dk, dv;            ///< For the gradient only.
  std::int64_t places_row = 0;  ///< From query to query in the dense array of scores; its flat index selects the draw.
  /// The heads of all batch entries: strides of q, k, v, y (or dy), mask, the array of scores, dq, dk, dv.
  Loops<9> heads;

  Precision precision = Precision::float32;  ///< Of the products.
  double scale = 1;                          ///< The factor of the scores.
  double rate = 0;                           ///< The dropout rate of the weights; 0: no dropout.
  std::uint64_t key = 0;                     ///< The key of the dropout's random stream.
  int threads = 1;
};

/// y = dropout(softmax(masked_fill(scale * q k', mask, -inf))) v; 0 for a query whose keys are all masked.
struct PlannedAttention {
  std::function<void(const void* q, const void* k, const void* v, const bool* mask, void* y, void* scratch,
                     std::uint64_t step)>
      run;
  std::size_t scratch_bytes = 0;  ///< `scratch` must be 64-byte aligned.
};
PlannedAttention make_attention(const AttentionPlan& plan);

/// The gradients of attention. The weights are recomputed.
struct PlannedAttentionGrad {
  std::function<void(const void* q, const void* k, const void* v, const bool* mask, const void* dy, void* dq, void* dk,
                     void* dv, void* scratch, std::uint64_t step)>
      run;
  std::size_t scratch_bytes = 0;
};
PlannedAttentionGrad make_attention_grad(const AttentionPlan& plan);

}  // namespace xtape
