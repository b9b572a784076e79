/// Fused attention, block by block: the array of all scores (queries x keys, for every head) is never in memory. After
/// Dao, Fu, Ermon, Rudra and Ré (2022, FlashAttention), but with blocks of queries only, because a processor's cache
/// holds the scores of some queries for all keys. Trailing keys that are masked for all queries of a block are skipped.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "kernel_form.hpp"
#include "loops.hpp"

namespace xtape {

struct AttentionPlan {
  Dtype dtype = Dtype::float32;  ///< For the results, and for the operands except those of `narrow`.
  /// For q, k, v and dy: a half or int8, if the operand of a float32 attention is stored so.
  std::array<std::optional<Dtype>, 4> narrow = {};
  std::int64_t queries = 1, keys = 1;
  std::int64_t width = 1, value_width = 1;  ///< The elements of a query or key; those of a value and of the output.

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

  Precision precision = Precision::float32;  ///< The precision of the products.
  double scale = 1;                          ///< The factor of the scores.
  bool masked = false;                       ///< Whether there is a mask, the last input.
  double rate = 0;                           ///< The dropout rate of the weights; 0: no dropout.
  std::uint64_t key = 0;                     ///< The key of the dropout's random stream.
  int threads = 1;
};

/// The plan of a call of attention, or of its gradient.
AttentionPlan plan_of_attention(const KernelForm& form, bool gradient);

/// The elements of the mask, input number `place`; without a mask, a single false.
inline const bool* mask_of(const KernelArguments& arguments, std::size_t place, bool masked) {
  static constexpr bool seen = false;
  return masked ? in<bool>(arguments, place) : &seen;
}

}  // namespace xtape
